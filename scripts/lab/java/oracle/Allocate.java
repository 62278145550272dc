import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby.MachineRoomResolver;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Which queues RocketMQ's own strategies give a member. Each line has five fields between tabs: the strategy, what
 * configures it, the queues, the members and the member; a list has commas, a queue is topic/broker/number. The answer:
 * the queues in the same form, or the name of what was thrown.
 */
public class Allocate {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split("\t", -1)));
        }
        out.flush();
    }

    private static String answer(String[] fields) {
        try {
            List<MessageQueue> found =
                strategy(fields[0], fields[1]).allocate("G", fields[4], queues(fields[2]), words(fields[3]));
            List<String> texts = new ArrayList<>();
            for (MessageQueue queue : found) {
                texts.add(queue.getTopic() + "/" + queue.getBrokerName() + "/" + queue.getQueueId());
            }
            return String.join(",", texts);
        } catch (RuntimeException thrown) {
            return thrown.getClass().getSimpleName();
        }
    }

    private static AllocateMessageQueueStrategy strategy(String name, String configured) {
        if (name.startsWith("MACHINE_ROOM_NEARBY-")) {
            String inner = name.substring("MACHINE_ROOM_NEARBY-".length());
            return new AllocateMachineRoomNearby(strategy(inner, configured), new BeforeTheDash());
        }
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return configured.isEmpty() ? new AllocateMessageQueueConsistentHash()
                    : new AllocateMessageQueueConsistentHash(Integer.parseInt(configured));
            case "CONFIG":
                AllocateMessageQueueByConfig byConfig = new AllocateMessageQueueByConfig();
                byConfig.setMessageQueueList(queues(configured));
                return byConfig;
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
                byRoom.setConsumeridcs(new HashSet<>(words(configured)));
                return byRoom;
            default:
                throw new IllegalStateException(name);
        }
    }

    /** Brokers and members whose names begin with their room. */
    private static class BeforeTheDash implements MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return room(queue.getBrokerName());
        }

        @Override
        public String consumerDeployIn(String clientId) {
            return room(clientId);
        }

        private static String room(String name) {
            return name.contains("-") ? name.substring(0, name.indexOf('-')) : null;
        }
    }

    private static List<String> words(String list) {
        return list.isEmpty() ? new ArrayList<>() : new ArrayList<>(Arrays.asList(list.split(",", -1)));
    }

    private static List<MessageQueue> queues(String list) {
        List<MessageQueue> found = new ArrayList<>();
        for (String word : words(list)) {
            String[] parts = word.split("/", -1);
            found.add(new MessageQueue(parts[0], parts[1], Integer.parseInt(parts[2])));
        }
        return found;
    }
}
