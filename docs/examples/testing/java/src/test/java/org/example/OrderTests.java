package org.example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(RocketMQ.Extension.class)
class OrderTests {
    private static List<String> texts(List<MessageExt> messages) {
        return messages.stream()
                .map(message -> new String(message.getBody(), StandardCharsets.UTF_8))
                .collect(Collectors.toList());
    }

    @Test
    void ordersAreSent(RocketMQ mq) throws Exception {
        String orders = mq.topic("Orders");
        DefaultMQProducer program = new DefaultMQProducer(mq.group("shop"));
        program.setNamesrvAddr(mq.nameServer());
        program.start();
        program.send(new Message(orders, "paid", "book".getBytes(StandardCharsets.UTF_8)));
        program.shutdown();
        assertEquals(List.of("book"), texts(mq.messages(orders)));
        assertEquals("paid", mq.messages(orders).get(0).getTags());
    }

    @Test
    void ordersAreBilled(RocketMQ mq) throws Exception {
        String orders = mq.topic("Orders", 4);
        mq.send(orders, "lamp");
        BlockingQueue<String> billed = new LinkedBlockingQueue<>();
        DefaultMQPushConsumer program = new DefaultMQPushConsumer(mq.group("billing"));
        program.setNamesrvAddr(mq.nameServer());
        program.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        program.subscribe(orders, "*");
        program.registerMessageListener(
                (MessageListenerConcurrently)
                        (messages, context) -> {
                            billed.addAll(texts(messages));
                            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                        });
        program.start();
        assertEquals("lamp", billed.poll(60, TimeUnit.SECONDS));
        program.shutdown();
    }

    @Test
    void eachTestHasTopicsOfItsOwn(RocketMQ mq) throws Exception {
        assertEquals(List.of(), mq.messages(mq.topic("Orders")));
    }
}
