import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

import org.apache.kafka.common.utils.Exit;

/**
 * Runs many of Kafka's command-line tools in one JVM, because starting a JVM costs more than most tools do.
 *
 * A request on stdin is the tool's class name and its arguments, one per line, ended by an empty line.
 * The answer on stdout is "exit-status bytes-of-output bytes-of-errors", a new line, and those bytes.
 * Every tool leaves through Kafka's own Exit class, which lets us turn the end of the process into an exception.
 */
public final class ToolRunner {
    /** Collects what is printed, by the tool and by threads that it may leave behind. */
    private static final class Capture extends ByteArrayOutputStream {
        synchronized byte[] take() {
            byte[] all = toByteArray();
            reset();
            return all;
        }
    }

    private static final class ToolExit extends RuntimeException {
        ToolExit() {
            super("the tool has ended", null, false, false);
        }
    }

    /** Some tools catch what their exit throws and leave a second time: the first status is the true one. */
    private static Integer firstStatus;

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = System.out;
        Capture output = new Capture();
        Capture errors = new Capture();
        // Set once and for all: Scala remembers the first stream that it sees.
        System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((status, message) -> {
            if (message != null && firstStatus == null) {
                System.err.println(message);
            }
            if (firstStatus == null) {
                firstStatus = status;
            }
            throw new ToolExit();
        });
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String> request;
        while (!(request = readRequest(requests)).isEmpty()) {
            int status = run(request);
            System.out.flush();
            System.err.flush();
            byte[] printed = output.take();
            byte[] complained = errors.take();
            answers.println(status + " " + printed.length + " " + complained.length);
            answers.write(printed);
            answers.write(complained);
            answers.flush();
        }
    }

    private static List<String> readRequest(BufferedReader requests) throws Exception {
        List<String> request = new ArrayList<>();
        String line;
        while ((line = requests.readLine()) != null && !line.isEmpty()) {
            request.add(line);
        }
        return request;
    }

    private static int run(List<String> request) {
        firstStatus = null;
        try {
            Method main = Class.forName(request.get(0)).getMethod("main", String[].class);
            main.invoke(null, (Object) request.subList(1, request.size()).toArray(new String[0]));
            return firstStatus == null ? 0 : firstStatus;
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof ToolExit) {
                return firstStatus;
            }
            error.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
            return 1;
        }
    }
}
