import com.fasterxml.jackson.databind.JsonNode;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;

import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactional producers, by name. */
final class Transactions {
    private final String bootstrap;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();

    Transactions(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    private KafkaProducer<byte[], byte[]> get(JsonNode request) {
        return producers.get(request.get("producer").asText());
    }

    void open(JsonNode request) {
        Map<String, Object> config = Access.connection(bootstrap);
        config.put("transactional.id", request.get("transactional_id").asText());
        config.put("transaction.timeout.ms", request.get("timeout_ms").asInt());
        config.put("delivery.timeout.ms", 15000);
        config.put("request.timeout.ms", 10000);
        config.put("max.block.ms", 15000);
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
        producers.put(request.get("producer").asText(), producer);
        producer.initTransactions();
    }

    void begin(JsonNode request) {
        get(request).beginTransaction();
    }

    void send(JsonNode request) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode value : request.get("values")) {
            sent.add(get(request).send(new ProducerRecord<>(
                request.get("topic").asText(), request.get("partition").asInt(), null, value.binaryValue())));
        }
        get(request).flush();
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
    }

    void sendOffsets(JsonNode request, Members.Member member) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        request.get("offsets").properties().forEach(entry -> offsets.put(
            new TopicPartition(member.topic, Integer.parseInt(entry.getKey())),
            new OffsetAndMetadata(entry.getValue().asLong())));
        get(request).sendOffsetsToTransaction(offsets, member.consumer.groupMetadata());
    }

    void end(JsonNode request) {
        if (request.get("how").asText().equals("commit")) {
            get(request).commitTransaction();
        } else {
            get(request).abortTransaction();
        }
    }

    void close(JsonNode request) {
        KafkaProducer<byte[], byte[]> producer = producers.remove(request.get("producer").asText());
        if (producer != null) {
            producer.close();
        }
    }
}
