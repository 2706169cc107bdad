import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Members of consumer groups, by name. Each is polled from outside. */
final class Members {
    /** One consumer, and what it had to give back since it was last asked. */
    static final class Member implements ConsumerRebalanceListener {
        final String topic;
        final KafkaConsumer<byte[], byte[]> consumer;
        final List<List<Integer>> revoked = new ArrayList<>();

        Member(String topic, Map<String, Object> config) {
            this.topic = topic;
            consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
            consumer.subscribe(List.of(topic), this);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            if (!partitions.isEmpty()) {
                revoked.add(partitions.stream().map(TopicPartition::partition).toList());
            }
        }
    }

    private final String bootstrap;
    private final Map<String, Member> members = new HashMap<>();

    Members(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    Member get(JsonNode request) {
        return members.get(request.get("member").asText());
    }

    private TopicPartition partition(JsonNode request) {
        return new TopicPartition(get(request).topic, request.get("partition").asInt());
    }

    void join(JsonNode request) {
        boolean classic = request.get("protocol").asText().equals("classic");
        Map<String, Object> config = Access.connection(bootstrap);
        config.put("group.id", request.get("group").asText());
        config.put("group.protocol", request.get("protocol").asText());
        config.put("enable.auto.commit", false);
        config.put("auto.offset.reset", "earliest");
        config.put("fetch.max.wait.ms", 100);
        config.put("default.api.timeout.ms", 10000);
        config.put("isolation.level", request.get("committed_only").asBoolean() ? "read_committed" : "read_uncommitted");
        if (!request.get("instance").isNull()) {
            config.put("group.instance.id", request.get("instance").asText());
        }
        if (classic) {
            config.put("session.timeout.ms", request.get("session_ms").asInt());
            config.put("heartbeat.interval.ms", request.get("heartbeat_ms").asInt());
            config.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer."
                + (request.get("cooperative").asBoolean() ? "CooperativeStickyAssignor" : "RangeAssignor"));
        }
        members.put(request.get("member").asText(), new Member(request.get("topic").asText(), config));
    }

    void poll(JsonNode request, ObjectNode result) {
        Member member = get(request);
        ArrayNode records = result.putArray("records");
        Duration patience = Duration.ofMillis(request.get("timeout_ms").asLong());
        for (ConsumerRecord<byte[], byte[]> record : member.consumer.poll(patience)) {
            ObjectNode one = records.addObject();
            one.put("partition", record.partition());
            one.put("offset", record.offset());
            one.put("value", record.value());
        }
        ArrayNode assignment = result.putArray("assignment");
        member.consumer.assignment().forEach(one -> assignment.add(one.partition()));
        result.set("revoked", ClientProgram.JSON.valueToTree(member.revoked));
        member.revoked.clear();
    }

    void commit(JsonNode request) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        String metadata = request.get("metadata").asText();
        request.get("offsets").properties().forEach(entry -> offsets.put(
            new TopicPartition(get(request).topic, Integer.parseInt(entry.getKey())),
            new OffsetAndMetadata(entry.getValue().asLong(), metadata)));
        get(request).consumer.commitSync(offsets);
    }

    void committed(JsonNode request, ObjectNode result) {
        Set<TopicPartition> asked = new HashSet<>();
        request.get("parts").forEach(one -> asked.add(new TopicPartition(get(request).topic, one.asInt())));
        ObjectNode found = result.putObject("committed");
        get(request).consumer.committed(asked).forEach((partition, offset) -> {
            if (offset != null) {
                ObjectNode one = found.putObject(Integer.toString(partition.partition()));
                one.put("offset", offset.offset());
                one.put("metadata", offset.metadata());
            }
        });
    }

    void seek(JsonNode request) {
        get(request).consumer.seek(partition(request), request.get("offset").asLong());
    }

    void pause(JsonNode request) {
        get(request).consumer.pause(List.of(partition(request)));
    }

    void resume(JsonNode request) {
        get(request).consumer.resume(List.of(partition(request)));
    }

    void leave(JsonNode request) {
        Member member = members.remove(request.get("member").asText());
        if (member != null) {
            member.consumer.close();
        }
    }
}
