import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producing and consuming by assignment, never as a member of a group. */
final class DataPath {
    private final String bootstrap;

    DataPath(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    void produce(JsonNode request, ObjectNode result) throws Exception {
        Map<String, Object> config = Access.connection(bootstrap);
        config.put("acks", request.get("acks").asText());
        config.put("compression.type", request.get("compression").asText());
        config.put("enable.idempotence", request.get("idempotent").asBoolean());
        config.put("linger.ms", 20);
        config.put("max.request.size", 64 << 20);
        config.put("buffer.memory", 128L << 20);
        config.put("delivery.timeout.ms", 20000);
        config.put("request.timeout.ms", 10000);
        config.put("max.block.ms", 10000);
        ArrayNode offsets = result.putArray("offsets");
        try (KafkaProducer<byte[], byte[]> producer =
                 new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : request.get("records")) {
                sent.add(producer.send(toRecord(request, record)));
            }
            producer.flush();
            for (Future<RecordMetadata> one : sent) {
                offsets.add(one.get().offset());
            }
        }
    }

    private static ProducerRecord<byte[], byte[]> toRecord(JsonNode request, JsonNode record) throws Exception {
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.get("headers")) {
            headers.add(new RecordHeader(header.get(0).asText(), ClientProgram.bytes(header.get(1))));
        }
        JsonNode timestamp = record.get("timestamp");
        return new ProducerRecord<>(
            request.get("topic").asText(),
            request.get("partition").asInt(),
            timestamp.isNull() ? null : timestamp.asLong(),
            ClientProgram.bytes(record.get("key")),
            ClientProgram.bytes(record.get("value")),
            headers);
    }

    void consume(JsonNode request, ObjectNode result) {
        Map<String, Object> config = Access.connection(bootstrap);
        config.put("auto.offset.reset", "none");
        config.put("enable.auto.commit", false);
        config.put("allow.auto.create.topics", false);
        config.put("fetch.max.wait.ms", 100);
        config.put("default.api.timeout.ms", 10000);
        config.put("isolation.level", request.path("isolation").asText("read_uncommitted"));
        TopicPartition partition =
            new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
        int wanted = request.get("count").asInt();
        ArrayNode records = result.putArray("records");
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            seek(consumer, partition, request);
            result.put("position", consumer.position(partition));
            long deadline = System.nanoTime() + request.get("timeout_ms").asLong() * 1_000_000L;
            while (records.size() < wanted && System.nanoTime() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    if (records.size() < wanted) {
                        describe(record, records.addObject());
                    }
                }
            }
        }
    }

    private static void seek(
            KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, JsonNode request) {
        long value = request.get("value").asLong();
        switch (request.get("at").asText()) {
            case "start": consumer.seekToBeginning(List.of(partition)); break;
            case "end": consumer.seekToEnd(List.of(partition)); break;
            case "offset": consumer.seek(partition, value); break;
            case "timestamp":
                OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, value)).get(partition);
                if (found == null) {
                    consumer.seekToEnd(List.of(partition));
                } else {
                    consumer.seek(partition, found.offset());
                }
                break;
            default: throw new IllegalArgumentException("no start at " + request.get("at"));
        }
    }

    private static void describe(ConsumerRecord<byte[], byte[]> record, ObjectNode into) {
        into.put("offset", record.offset());
        into.put("timestamp", record.timestamp());
        into.put("key", record.key());
        into.put("value", record.value());
        ArrayNode headers = into.putArray("headers");
        for (Header header : record.headers()) {
            ArrayNode one = headers.addArray();
            one.add(header.key());
            ClientProgram.put(one, header.value());
        }
    }
}
