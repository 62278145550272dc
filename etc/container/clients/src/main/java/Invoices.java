import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Writes an invoice for each paid order, until it is stopped. The only argument is the name server. */
public class Invoices {
    public static void main(String[] words) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("billing-producer");
        producer.setNamesrvAddr(words[0]);
        producer.start();

        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("billing");
        consumer.setNamesrvAddr(words[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        // The topic may be made later: look for it each second.
        consumer.setPollNameServerInterval(1000);
        consumer.subscribe("Orders", "paid");
        consumer.registerMessageListener((MessageListenerConcurrently) (orders, context) -> {
            try {
                for (MessageExt order : orders) {
                    String text = "invoice for " + new String(order.getBody(), StandardCharsets.UTF_8);
                    producer.send(new Message(
                        "Invoices", "", order.getKeys(), text.getBytes(StandardCharsets.UTF_8)));
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            } catch (Exception error) {
                System.err.println("The orders come again: " + error);
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
        });
        consumer.start();
        System.out.println("waiting for orders");
        Thread.currentThread().join();
    }
}
