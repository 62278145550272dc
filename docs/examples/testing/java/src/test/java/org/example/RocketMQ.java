package org.example;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * A RocketMQ broker for one test, with topics and groups that no other test has.
 *
 * <p>A class with {@code @ExtendWith(RocketMQ.Extension.class)} has it as a parameter of its
 * tests. Behind all of them there is one child process, {@code rocketbroker standalone}, which
 * begins with the first and ends with this Java. The property {@code rocketbroker} says where the
 * program is, unless it is in the path. What the broker has logged during a test that fails is
 * printed.
 */
public final class RocketMQ {
    private static final Namespace NAMESPACE = Namespace.create(RocketMQ.class);

    private final Server server;
    private final int number;
    private final long logStart;

    private RocketMQ(Server server) {
        this.server = server;
        number = server.tests.incrementAndGet();
        logStart = server.log.length();
    }

    /** The address that the program under test is given. */
    public String nameServer() {
        return server.nameServer;
    }

    /** A topic of this test with one queue: its whole name. */
    public String topic(String name) throws Exception {
        return topic(name, 1);
    }

    /** A topic of this test: its whole name. */
    public String topic(String name, int queues) throws Exception {
        String topic = name + "-" + number;
        server.producer.createTopic("TBW102", topic, queues, Map.of());
        return topic;
    }

    /** A name for a group of this test. */
    public String group(String name) {
        return name + "-" + number;
    }

    /** Send a message and wait until it is stored. */
    public void send(String topic, String body) throws Exception {
        server.producer.send(new Message(topic, body.getBytes(StandardCharsets.UTF_8)));
    }

    /** All messages that a topic has now, in the order in which they were stored. */
    public List<MessageExt> messages(String topic) throws Exception {
        List<MessageExt> found = new ArrayList<>();
        for (MessageQueue queue : server.reader.fetchSubscribeMessageQueues(topic)) {
            long offset = server.reader.minOffset(queue);
            long end = server.reader.maxOffset(queue);
            while (offset < end) {
                PullResult pulled = server.reader.pull(queue, "*", offset, 32);
                if (pulled.getPullStatus() != PullStatus.FOUND) {
                    throw new IllegalStateException(queue + " at " + offset + ": " + pulled);
                }
                found.addAll(pulled.getMsgFoundList());
                offset = pulled.getNextBeginOffset();
            }
        }
        found.sort(Comparator.comparingLong(MessageExt::getCommitLogOffset));
        return found;
    }

    /** Gives tests their broker. */
    public static final class Extension implements ParameterResolver, AfterEachCallback {
        @Override
        public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
            return parameter.getParameter().getType() == RocketMQ.class;
        }

        @Override
        public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
            Server server =
                    context.getRoot()
                            .getStore(NAMESPACE)
                            .getOrComputeIfAbsent(Server.class, key -> new Server(), Server.class);
            return context.getStore(NAMESPACE)
                    .getOrComputeIfAbsent(
                            RocketMQ.class, key -> new RocketMQ(server), RocketMQ.class);
        }

        @Override
        public void afterEach(ExtensionContext context) throws IOException {
            RocketMQ broker = context.getStore(NAMESPACE).get(RocketMQ.class, RocketMQ.class);
            if (broker != null && context.getExecutionException().isPresent()) {
                byte[] log = Files.readAllBytes(broker.server.log.toPath());
                int start = (int) broker.logStart;
                byte[] words = Arrays.copyOfRange(log, start, log.length);
                System.err.println("log of the broker:");
                System.err.println(new String(words, StandardCharsets.UTF_8));
            }
        }
    }

    /** The process, and clients that all tests share. */
    private static final class Server implements CloseableResource {
        private static final Pattern READY = Pattern.compile("\"namesrv\":\"([^\"]+)\"");

        final AtomicInteger tests = new AtomicInteger();
        final DefaultMQProducer producer = new DefaultMQProducer("tests");
        @SuppressWarnings("deprecation")
        final DefaultMQPullConsumer reader = new DefaultMQPullConsumer("tests");
        final File log;
        final String nameServer;
        private final Process process;

        Server() {
            try {
                log = File.createTempFile("rocketbroker", ".log");
                log.deleteOnExit();
                process =
                        new ProcessBuilder(
                                        System.getProperty("rocketbroker", "rocketbroker"),
                                        "standalone",
                                        "--temporary",
                                        "--exit-with-parent",
                                        "--output=json",
                                        "--namesrv-port=0",
                                        "--port=0",
                                        "--metrics-port=off",
                                        "--set=longPollingEnable=false",
                                        "--set=shortPollingTimeMills=100")
                                .redirectError(log)
                                .start();
                String line =
                        new BufferedReader(new InputStreamReader(process.getInputStream()))
                                .readLine();
                if (line == null) {
                    throw new IllegalStateException(Files.readString(log.toPath()));
                }
                Matcher ready = READY.matcher(line);
                if (!ready.find()) {
                    throw new IllegalStateException(line);
                }
                nameServer = ready.group(1);
                producer.setNamesrvAddr(nameServer);
                producer.start();
                reader.setNamesrvAddr(nameServer);
                reader.start();
            } catch (IOException | MQClientException problem) {
                throw new IllegalStateException(problem);
            }
        }

        @Override
        public void close() throws InterruptedException {
            reader.shutdown();
            producer.shutdown();
            process.destroy();
            process.waitFor();
        }
    }
}
