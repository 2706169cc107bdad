import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutionException;

import org.apache.kafka.common.protocol.Errors;

/**
 * Kafka's newest Java client, driven from outside: one JSON object per line in, one per line out.
 *
 * A request names an operation in "op". An answer has "ok"; a failure has Kafka's error "code" as well.
 * Keys, values and header values are base64. usage: ClientProgram BOOTSTRAP
 */
public final class ClientProgram {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Administration administration = new Administration(arguments[0])) {
            DataPath data = new DataPath(arguments[0]);
            Members members = new Members(arguments[0]);
            Transactions transactions = new Transactions(arguments[0]);
            String line;
            while ((line = requests.readLine()) != null) {
                answers.println(JSON.writeValueAsString(answer(JSON.readTree(line), (request, result) -> {
                    if (!runForGroups(members, transactions, request, result)) {
                        run(administration, data, request, result);
                    }
                })));
            }
        }
    }

    private interface Operation {
        void run(JsonNode request, ObjectNode result) throws Exception;
    }

    private static ObjectNode answer(JsonNode request, Operation operation) {
        ObjectNode result = JSON.createObjectNode();
        try {
            operation.run(request, result);
            result.put("ok", true);
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            result.removeAll();
            result.put("ok", false);
            result.put("code", Errors.forException(cause).code());
            result.put("message", cause.toString());
        }
        return result;
    }

    /** Whether it was one of the operations on members of groups and on transactions. */
    private static boolean runForGroups(
            Members members, Transactions transactions, JsonNode request, ObjectNode result) throws Exception {
        switch (request.get("op").asText()) {
            case "join": members.join(request); break;
            case "poll": members.poll(request, result); break;
            case "commit": members.commit(request); break;
            case "committed": members.committed(request, result); break;
            case "seek": members.seek(request); break;
            case "pause": members.pause(request); break;
            case "resume": members.resume(request); break;
            case "leave": members.leave(request); break;
            case "txn_open": transactions.open(request); break;
            case "txn_begin": transactions.begin(request); break;
            case "txn_send": transactions.send(request); break;
            case "txn_offsets": transactions.sendOffsets(request, members.get(request)); break;
            case "txn_end": transactions.end(request); break;
            case "txn_close": transactions.close(request); break;
            default: return false;
        }
        return true;
    }

    private static void run(Administration administration, DataPath data, JsonNode request, ObjectNode result)
            throws Exception {
        switch (request.get("op").asText()) {
            case "produce": data.produce(request, result); break;
            case "consume": data.consume(request, result); break;
            case "create": administration.create(request); break;
            case "delete": administration.delete(request); break;
            case "describe": administration.describe(request, result); break;
            case "add_partitions": administration.addPartitions(request); break;
            case "describe_configs": administration.describeConfigs(request, result); break;
            case "alter_config": administration.alterConfig(request); break;
            case "delete_records": administration.deleteRecords(request, result); break;
            case "list_offsets": administration.listOffsets(request, result); break;
            case "describe_cluster": administration.describeCluster(result); break;
            case "describe_log_dirs": administration.describeLogDirs(request, result); break;
            case "describe_producers": administration.describeProducers(request, result); break;
            case "elect_leaders": administration.electLeaders(request); break;
            default: throw new IllegalArgumentException("no operation " + request.get("op"));
        }
    }

    static byte[] bytes(JsonNode node) throws Exception {
        return node == null || node.isNull() ? null : node.binaryValue();
    }

    static void put(ArrayNode array, byte[] value) {
        if (value == null) {
            array.addNull();
        } else {
            array.add(value);
        }
    }
}
