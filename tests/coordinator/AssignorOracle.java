// Apache Kafka's own assignors on groups from standard input, a JSON array; the assignments go to standard output.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class AssignorOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        ArrayNode answers = JSON.createArrayNode();
        for (JsonNode group : JSON.readTree(System.in)) {
            answers.add(assign(group));
        }
        System.out.println(JSON.writeValueAsString(answers));
    }

    private static Uuid topicId(String number) {
        return new Uuid(0, Long.parseLong(number));
    }

    private static ObjectNode assign(JsonNode group) {
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        group.get("members").fields().forEachRemaining(entry -> {
            JsonNode member = entry.getValue();
            Set<Uuid> subscribed = new HashSet<>();
            member.get("topics").forEach(topic -> subscribed.add(topicId(topic.asText())));
            Map<Uuid, Set<Integer>> owned = new HashMap<>();
            member.get("owned").fields().forEachRemaining(topic -> {
                Uuid id = topicId(topic.getKey());
                topic.getValue().forEach(partition -> {
                    owned.computeIfAbsent(id, key -> new HashSet<>()).add(partition.asInt());
                    owners.computeIfAbsent(id, key -> new HashMap<>()).put(partition.asInt(), entry.getKey());
                });
            });
            members.put(entry.getKey(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.ofNullable(member.get("instance").textValue()), subscribed,
                new Assignment(owned)));
        });
        SubscribedTopicDescriber topics = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid id) {
                return group.get("topics").get(Long.toString(id.getLeastSignificantBits())).asInt();
            }

            @Override
            public Set<String> racksForPartition(Uuid id, int partition) {
                throw new AssertionError("an assignor asks for racks");
            }
        };
        ConsumerGroupPartitionAssignor assignor =
            group.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        SubscriptionType type = group.get("homogeneous").asBoolean()
            ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        ObjectNode answer = JSON.createObjectNode();
        assignor.assign(new GroupSpecImpl(members, type, owners), topics).members().forEach((id, assignment) ->
            assignment.partitions().forEach((topic, partitions) -> new TreeSet<>(partitions).forEach(partition ->
                answer.withObject("/" + id).withArray(Long.toString(topic.getLeastSignificantBits()))
                    .add(partition))));
        return answer;
    }
}
