import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A producer and a consumer that never rest, and tell every step on their standard output:
 *
 * <pre>
 *   s NUMBER PARTITION           a record is sent; its value is NAME.NUMBER
 *   a NUMBER OFFSET              it is acknowledged
 *   u NUMBER ERROR               nobody knows
 *   r PARTITION OFFSET:VALUE...  records came, in this order
 *   p OFFSET...                  from here on it reads from these positions, one for each partition
 *   c TEXT                       what no consumer may see
 * </pre>
 * They end when standard input does. usage: Chaos BOOTSTRAP TOPIC PARTITIONS RATE SEED NAME
 */
public final class Chaos {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static volatile boolean ended;

    private final String bootstrap;
    private final String topic;
    private final int partitions;
    private final String name;

    private Chaos(String bootstrap, String topic, int partitions, String name) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.partitions = partitions;
        this.name = name;
    }

    public static void main(String[] arguments) throws Exception {
        Chaos chaos = new Chaos(arguments[0], arguments[1], Integer.parseInt(arguments[2]), arguments[5]);
        double rate = Double.parseDouble(arguments[3]);
        long seed = Long.parseLong(arguments[4]);
        Thread producer = new Thread(() -> chaos.produce(rate, new Random(seed)));
        Thread consumer = new Thread(() -> chaos.consume(new Random(seed + 1)));
        producer.start();
        consumer.start();
        while (System.in.read() >= 0) {
            continue;
        }
        ended = true;
        producer.join();
        consumer.join();
    }

    private void produce(double rate, Random random) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("acks", "all");
        config.put("enable.idempotence", true);
        config.put("linger.ms", 5);
        // Longer than it lives: a producer that gives up a record takes a new epoch and may store others twice.
        config.put("delivery.timeout.ms", 600000);
        config.put("request.timeout.ms", 5000);
        config.put("max.block.ms", 5000);
        config.put("metadata.max.age.ms", 5000);
        config.put("reconnect.backoff.max.ms", 500);
        KafkaProducer<String, String> producer =
            new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
        for (long number = 0; !ended; number++) {
            send(producer, number, random);
            sleep((long) (1000 / rate));
        }
        producer.close(Duration.ofSeconds(30));
    }

    private void send(KafkaProducer<String, String> producer, long number, Random random) {
        int partition = random.nextInt(partitions);
        String value = name + "." + number + " " + "x".repeat(random.nextInt(300));
        OUT.println("s " + number + " " + partition);
        try {
            producer.send(new ProducerRecord<>(topic, partition, null, value), (metadata, error) -> {
                if (error == null) {
                    OUT.println("a " + number + " " + metadata.offset());
                } else {
                    OUT.println("u " + number + " " + oneLine(error));
                }
            });
        } catch (RuntimeException error) {
            OUT.println("u " + number + " " + oneLine(error));
        }
    }

    private void consume(Random random) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", bootstrap);
        config.put("auto.offset.reset", "none");
        config.put("enable.auto.commit", false);
        config.put("isolation.level", "read_committed");
        config.put("fetch.max.wait.ms", 200);
        config.put("metadata.max.age.ms", 5000);
        config.put("reconnect.backoff.max.ms", 500);
        List<TopicPartition> assigned = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++) {
            assigned.add(new TopicPartition(topic, partition));
        }
        long[] positions = new long[partitions];
        try (KafkaConsumer<String, String> consumer =
                 new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(assigned);
            seek(consumer, positions, 0);
            while (!ended) {
                if (random.nextInt(64) == 0) {
                    seek(consumer, positions, random.nextInt(1000));
                }
                poll(consumer, positions);
            }
        }
    }

    private void seek(KafkaConsumer<String, String> consumer, long[] positions, int back) {
        StringBuilder line = new StringBuilder("p");
        for (int partition = 0; partition < partitions; partition++) {
            long at = Math.max(0, positions[partition] - back);
            consumer.seek(new TopicPartition(topic, partition), at);
            line.append(' ').append(at);
        }
        OUT.println(line);
    }

    private void poll(KafkaConsumer<String, String> consumer, long[] positions) {
        try {
            ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(200));
            for (TopicPartition partition : records.partitions()) {
                StringBuilder line = new StringBuilder("r ").append(partition.partition());
                for (ConsumerRecord<String, String> record : records.records(partition)) {
                    String value = record.value();
                    line.append(' ').append(record.offset()).append(':');
                    line.append(value, 0, value.indexOf(' '));
                    positions[partition.partition()] = record.offset() + 1;
                }
                OUT.println(line);
            }
        } catch (OffsetOutOfRangeException error) {
            OUT.println("c " + oneLine(error));
            seek(consumer, positions, 0);
            sleep(200);
        }
    }

    private static String oneLine(Throwable error) {
        return error.toString().replace('\n', ' ');
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
