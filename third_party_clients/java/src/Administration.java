import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.ReplicaInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** The administrative operations, each a direct use of Kafka's Admin client. */
final class Administration implements AutoCloseable {
    private final Admin admin;

    Administration(String bootstrap) {
        Map<String, Object> config = Access.connection(bootstrap);
        config.put("default.api.timeout.ms", 10000);
        config.put("request.timeout.ms", 5000);
        admin = Admin.create(config);
    }

    @Override
    public void close() {
        admin.close();
    }

    private static String topic(JsonNode request) {
        return request.get("topic").asText();
    }

    private static TopicPartition partition(JsonNode request) {
        return new TopicPartition(topic(request), request.get("partition").asInt());
    }

    void create(JsonNode request) throws Exception {
        Map<String, String> configs = new HashMap<>();
        request.get("configs").properties().forEach(entry -> configs.put(entry.getKey(), entry.getValue().asText()));
        NewTopic topic = new NewTopic(
            topic(request), Optional.of(request.get("partitions").asInt()), Optional.of((short) 1));
        admin.createTopics(List.of(topic.configs(configs))).all().get();
    }

    void delete(JsonNode request) throws Exception {
        admin.deleteTopics(List.of(topic(request))).all().get();
    }

    void describe(JsonNode request, ObjectNode result) throws Exception {
        TopicDescription found =
            admin.describeTopics(List.of(topic(request))).allTopicNames().get().get(topic(request));
        result.put("topic_id", found.topicId().toString());
        ArrayNode partitions = result.putArray("partitions");
        for (TopicPartitionInfo info : found.partitions()) {
            ObjectNode one = partitions.addObject();
            one.put("partition", info.partition());
            one.put("leader", info.leader() == null ? -1 : info.leader().id());
            ArrayNode replicas = one.putArray("replicas");
            info.replicas().forEach(node -> replicas.add(node.id()));
            ArrayNode isr = one.putArray("isr");
            info.isr().forEach(node -> isr.add(node.id()));
        }
    }

    void addPartitions(JsonNode request) throws Exception {
        NewPartitions wanted = NewPartitions.increaseTo(request.get("count").asInt());
        admin.createPartitions(Map.of(topic(request), wanted)).all().get();
    }

    void describeConfigs(JsonNode request, ObjectNode result) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic(request));
        ObjectNode configs = result.putObject("configs");
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            ObjectNode one = configs.putObject(entry.name());
            one.put("value", entry.value());
            one.put("source", entry.source().name());
            one.put("read_only", entry.isReadOnly());
        }
    }

    void alterConfig(JsonNode request) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic(request));
        AlterConfigOp operation = new AlterConfigOp(
            new ConfigEntry(request.get("name").asText(), request.get("value").asText()),
            AlterConfigOp.OpType.valueOf(request.get("how").asText().toUpperCase()));
        admin.incrementalAlterConfigs(Map.of(resource, List.of(operation))).all().get();
    }

    void deleteRecords(JsonNode request, ObjectNode result) throws Exception {
        RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("offset").asLong());
        result.put("low_watermark", admin.deleteRecords(Map.of(partition(request), before))
            .lowWatermarks().get(partition(request)).get().lowWatermark());
    }

    void listOffsets(JsonNode request, ObjectNode result) throws Exception {
        String at = request.get("at").asText();
        OffsetSpec spec;
        switch (at) {
            case "earliest": spec = OffsetSpec.earliest(); break;
            case "latest": spec = OffsetSpec.latest(); break;
            case "max_timestamp": spec = OffsetSpec.maxTimestamp(); break;
            default: spec = OffsetSpec.forTimestamp(Long.parseLong(at));
        }
        ListOffsetsResult.ListOffsetsResultInfo found =
            admin.listOffsets(Map.of(partition(request), spec)).partitionResult(partition(request)).get();
        result.put("offset", found.offset());
        result.put("timestamp", found.timestamp());
    }

    void describeCluster(ObjectNode result) throws Exception {
        DescribeClusterResult found = admin.describeCluster();
        result.put("cluster_id", found.clusterId().get());
        result.put("controller", found.controller().get().id());
        ArrayNode nodes = result.putArray("nodes");
        for (Node node : found.nodes().get()) {
            nodes.add(node.id());
        }
    }

    void describeLogDirs(JsonNode request, ObjectNode result) throws Exception {
        int broker = request.get("broker").asInt();
        ArrayNode replicas = result.putArray("replicas");
        for (LogDirDescription directory :
                admin.describeLogDirs(List.of(broker)).allDescriptions().get().get(broker).values()) {
            for (Map.Entry<TopicPartition, ReplicaInfo> entry : directory.replicaInfos().entrySet()) {
                if (entry.getKey().topic().equals(topic(request))) {
                    ObjectNode one = replicas.addObject();
                    one.put("partition", entry.getKey().partition());
                    one.put("size", entry.getValue().size());
                }
            }
        }
    }

    void describeProducers(JsonNode request, ObjectNode result) throws Exception {
        ArrayNode producers = result.putArray("producers");
        for (ProducerState state : admin.describeProducers(List.of(partition(request)))
                .partitionResult(partition(request)).get().activeProducers()) {
            ObjectNode one = producers.addObject();
            one.put("producer_id", state.producerId());
            one.put("last_sequence", state.lastSequence());
        }
    }

    void electLeaders(JsonNode request) throws Exception {
        admin.electLeaders(ElectionType.PREFERRED, Set.of(partition(request))).all().get();
    }
}
