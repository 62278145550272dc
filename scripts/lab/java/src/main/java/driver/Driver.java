package driver;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.QueryResult;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * The official client on a lead: reads one JSON command a line, does it, answers one JSON line. It decides nothing; what is
 * asserted stands in the Python tests. An answer is {"ok": ...} or {"error": class, "code": response code or 0, "text": ...}.
 */
public final class Driver {
    /** How long a server may take to answer: a machine that is busy elsewhere is no reason to fail. */
    private static final int ANSWER_MS = 15_000;

    private final String namesrv;
    private final Map<String, DefaultMQProducer> producers = new HashMap<>();
    private final Map<String, DefaultMQPushConsumer> consumers = new HashMap<>();
    private final Map<String, ConcurrentLinkedQueue<JSONObject>> boxes = new HashMap<>();
    private final Map<String, DefaultMQAdminExt> admins = new HashMap<>();
    private int instances;

    private Driver(String namesrv) {
        this.namesrv = namesrv;
    }

    public static void main(String[] words) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        Driver driver = new Driver(words[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            JSONObject answer = new JSONObject();
            try {
                JSONObject command = JSON.parseObject(line);
                answer.put("ok", driver.carryOut(command.getString("do"), command));
            } catch (Throwable problem) {
                describe(problem, answer);
            }
            out.println(answer.toJSONString());
        }
        System.exit(0);
    }

    private static void describe(Throwable problem, JSONObject into) {
        int code = 0;
        for (Throwable t = problem; t != null; t = t.getCause()) {
            if (t instanceof MQBrokerException) code = ((MQBrokerException) t).getResponseCode();
            else if (t instanceof MQClientException && code == 0) code = ((MQClientException) t).getResponseCode();
        }
        into.put("error", problem.getClass().getSimpleName());
        into.put("code", code);
        into.put("text", String.valueOf(problem.getMessage()));
    }

    private Object carryOut(String what, JSONObject c) throws Exception {
        switch (what) {
            case "producer": return startProducer(c);
            case "transactionalProducer": return startTransactionalProducer(c);
            case "sendInTransaction": return sendInTransaction(c);
            case "send": return send(c);
            case "sendBatch": return sendBatch(c);
            case "request": return request(c);
            case "consumer": return startConsumer(c);
            case "received": return received(c);
            case "queues": return queues(c);
            case "pull": return pull(c);
            case "litePull": return litePull(c);
            case "operator": return Operator.ask(admin(c), c);
            case "call": return Operator.call(admin(c), c);
            case "mqadmin": return Tool.run(c);
            case "announce": return announce(c);
            case "query": return query(c);
            case "writeCorpus": return writeCorpus(c);
            case "readCorpus": return readCorpus(c);
            case "refusals": return Signed.refusals();
            case "sendBack": return sendBack(c);
            case "offset": return offset(c);
            case "createTopic": return createTopic(c);
            case "deleteTopic": return deleteTopic(c);
            case "stop": return stop(c.getString("name"));
            default: throw new IllegalArgumentException(what);
        }
    }

    /** Of another cluster, if the command says so. */
    private String names(JSONObject c) {
        return c.containsKey("names") ? c.getString("names") : namesrv;
    }

    private DefaultMQAdminExt admin() throws Exception {
        return admin(new JSONObject());
    }

    /** Of the cluster and the account that the command names. */
    private DefaultMQAdminExt admin(JSONObject c) throws Exception {
        String names = names(c);
        String key = names + "/" + Signed.name(c);
        DefaultMQAdminExt admin = admins.get(key);
        if (admin == null) {
            admin = new DefaultMQAdminExt(Signed.of(c), ANSWER_MS);
            admin.setAdminExtGroup("driver-admin");
            admin.setMqClientApiTimeout(ANSWER_MS);
            admin.setNamesrvAddr(names);
            admin.setInstanceName("admin" + admins.size());
            admin.start();
            admins.put(key, admin);
        }
        return admin;
    }

    private static void patient(DefaultMQProducer p) {
        p.setSendMsgTimeout(ANSWER_MS);
        p.setMqClientApiTimeout(ANSWER_MS);
    }

    private Object startProducer(JSONObject c) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer(c.getString("group"), Signed.of(c));
        p.setNamesrvAddr(names(c));
        p.setInstanceName("producer" + instances++);
        patient(p);
        if (c.containsKey("namespace")) p.setNamespace(c.getString("namespace"));
        p.setRetryTimesWhenSendFailed(c.getIntValue("retries"));
        if (c.containsKey("pollMs")) p.setPollNameServerInterval(c.getIntValue("pollMs"));
        if (c.containsKey("sendMs")) p.setSendMsgTimeout(c.getIntValue("sendMs"));
        if (c.containsKey("compressOver")) p.setCompressMsgBodyOverHowmuch(c.getIntValue("compressOver"));
        if (c.containsKey("maxMessageSize")) p.setMaxMessageSize(c.getIntValue("maxMessageSize"));
        p.start();
        producers.put(c.getString("name"), p);
        return "started";
    }

    /** Its messages say themselves what becomes of them: properties "local" and "checked". */
    private Object startTransactionalProducer(JSONObject c) throws Exception {
        TransactionMQProducer p = new TransactionMQProducer(c.getString("group"), Signed.of(c));
        p.setNamesrvAddr(names(c));
        p.setInstanceName("producer" + instances++);
        patient(p);
        p.setTransactionListener(new TransactionListener() {
            @Override public LocalTransactionState executeLocalTransaction(Message m, Object unused) {
                return LocalTransactionState.valueOf(m.getUserProperty("local"));
            }
            @Override public LocalTransactionState checkLocalTransaction(MessageExt m) {
                return LocalTransactionState.valueOf(m.getUserProperty("checked"));
            }
        });
        p.start();
        producers.put(c.getString("name"), p);
        return "started";
    }

    private Object sendInTransaction(JSONObject c) throws Exception {
        TransactionMQProducer p = (TransactionMQProducer) producers.get(c.getString("name"));
        TransactionSendResult r = p.sendMessageInTransaction(message(c, c.getString("topic")), null);
        JSONObject o = result(r);
        o.put("transactionId", r.getTransactionId());
        o.put("local", r.getLocalTransactionState().name());
        return o;
    }

    private static Message message(JSONObject c, String topic) {
        Message m = new Message(topic, c.getString("tags"), c.getString("keys"), Base64.getDecoder().decode(c.getString("body")));
        JSONObject properties = c.getJSONObject("properties");
        if (properties != null) for (String name : properties.keySet()) m.putUserProperty(name, properties.getString(name));
        if (c.containsKey("delayLevel")) m.setDelayTimeLevel(c.getIntValue("delayLevel"));
        return m;
    }

    private static JSONObject result(SendResult r) {
        JSONObject o = new JSONObject();
        o.put("status", r.getSendStatus().name());
        o.put("queue", r.getMessageQueue().getQueueId());
        o.put("broker", r.getMessageQueue().getBrokerName());
        o.put("offset", r.getQueueOffset());
        o.put("msgId", r.getMsgId());
        o.put("offsetMsgId", r.getOffsetMsgId());
        return o;
    }

    private Object send(JSONObject c) throws Exception {
        DefaultMQProducer p = producers.get(c.getString("name"));
        Message m = message(c, c.getString("topic"));
        String mode = c.getString("mode");
        if ("oneway".equals(mode)) {
            p.sendOneway(m);
            return "sent";
        }
        if ("async".equals(mode)) {
            CompletableFuture<SendResult> answer = new CompletableFuture<>();
            p.send(m, new SendCallback() {
                @Override public void onSuccess(SendResult r) { answer.complete(r); }
                @Override public void onException(Throwable t) { answer.completeExceptionally(t); }
            });
            return result(answer.get(2 * ANSWER_MS, TimeUnit.MILLISECONDS));
        }
        if (c.containsKey("queue")) return result(p.send(m, new MessageQueue(m.getTopic(), c.getString("broker"), c.getIntValue("queue"))));
        return result(p.send(m));
    }

    private Object sendBatch(JSONObject c) throws Exception {
        List<Message> all = new ArrayList<>();
        JSONArray messages = c.getJSONArray("messages");
        for (int i = 0; i < messages.size(); i++) all.add(message(messages.getJSONObject(i), c.getString("topic")));
        return result(producers.get(c.getString("name")).send(all));
    }

    /** Ask and wait for the reply. Clients 5.3.1 to 5.3.3 call back with null when the question is sent, and again with the reply. */
    private Object request(JSONObject c) throws Exception {
        CompletableFuture<Message> reply = new CompletableFuture<>();
        producers.get(c.getString("name")).request(message(c, c.getString("topic")), new RequestCallback() {
            @Override public void onSuccess(Message m) { if (m != null) reply.complete(m); }
            @Override public void onException(Throwable t) { reply.completeExceptionally(t); }
        }, c.getLongValue("timeoutMs"));
        Message m = reply.get(c.getLongValue("timeoutMs") + 5000, TimeUnit.MILLISECONDS);
        JSONObject o = new JSONObject();
        o.put("body", Base64.getEncoder().encodeToString(m.getBody()));
        o.put("properties", m.getProperties());
        return o;
    }

    /** A reply has the body of what it answers, as often as "replyTimes" says. */
    private void reply(JSONObject c, MessageExt to) {
        try {
            StringBuilder body = new StringBuilder();
            for (int i = 0; i < c.getIntValue("replyTimes"); i++) body.append(new String(to.getBody(), StandardCharsets.UTF_8));
            producers.get(c.getString("replyBy")).send(MessageUtil.createReplyMessage(to, body.toString().getBytes(StandardCharsets.UTF_8)));
        } catch (Exception problem) {
            problem.printStackTrace(); // the client says nothing of it
            throw new IllegalStateException(problem);
        }
    }

    private static JSONObject seen(MessageExt m) {
        JSONObject o = new JSONObject();
        o.put("topic", m.getTopic());
        o.put("body", Base64.getEncoder().encodeToString(m.getBody()));
        o.put("tags", m.getTags());
        o.put("keys", m.getKeys());
        o.put("properties", m.getProperties());
        o.put("queue", m.getQueueId());
        o.put("times", m.getReconsumeTimes());
        o.put("offset", m.getQueueOffset());
        o.put("msgId", m.getMsgId());
        o.put("born", m.getBornTimestamp());
        o.put("stored", m.getStoreTimestamp());
        o.put("bornHost", m.getBornHostString());
        o.put("at", System.currentTimeMillis());
        return o;
    }

    /** MessageModel lives in another package from 5.x on, so it is found through the setter. */
    private static void setModel(DefaultMQPushConsumer c, String model) throws Exception {
        for (Method m : DefaultMQPushConsumer.class.getMethods())
            if (m.getName().equals("setMessageModel"))
                for (Object value : m.getParameterTypes()[0].getEnumConstants())
                    if (value.toString().equals(model)) m.invoke(c, value);
    }

    /** Let the broker assign queues, and say how messages come; 4.9 has no such methods. */
    private static void pop(DefaultMQPushConsumer consumer, long invisibleMs) throws Exception {
        DefaultMQPushConsumer.class.getMethod("setClientRebalance", boolean.class).invoke(consumer, false);
        DefaultMQPushConsumer.class.getMethod("setPopInvisibleTime", long.class).invoke(consumer, invisibleMs);
    }

    private Object startConsumer(JSONObject c) throws Exception {
        String name = c.getString("name");
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(c.getString("group"), Signed.of(c), new AllocateMessageQueueAveragely());
        consumer.setNamesrvAddr(names(c));
        consumer.setMqClientApiTimeout(ANSWER_MS);
        consumer.setInstanceName(c.containsKey("instance") ? c.getString("instance") : "consumer" + instances++);
        if (c.containsKey("pollMs")) consumer.setPollNameServerInterval(c.getIntValue("pollMs"));
        if (c.containsKey("namespace")) consumer.setNamespace(c.getString("namespace"));
        if (c.containsKey("pullIntervalMs")) consumer.setPullInterval(c.getLongValue("pullIntervalMs"));
        if (c.containsKey("heartbeatMs")) consumer.setHeartbeatBrokerInterval(c.getIntValue("heartbeatMs"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        if (c.containsKey("model")) setModel(consumer, c.getString("model"));
        if (c.getBooleanValue("pop")) pop(consumer, c.getLongValue("invisibleMs"));
        if (c.containsKey("sql")) consumer.subscribe(c.getString("topic"), MessageSelector.bySql(c.getString("sql")));
        else consumer.subscribe(c.getString("topic"), c.containsKey("tags") ? c.getString("tags") : "*");
        ConcurrentLinkedQueue<JSONObject> box = new ConcurrentLinkedQueue<>();
        boxes.put(name, box);
        if (c.containsKey("mostTimes")) consumer.setMaxReconsumeTimes(c.getIntValue("mostTimes"));
        int failing = c.getIntValue("failUntil");
        double failPart = c.getDoubleValue("failPart");
        Set<String> suspending = Collections.synchronizedSet(new TreeSet<>());
        if (c.containsKey("suspendOnceAt")) suspending.add(c.getString("suspendOnceAt"));
        FileOutputStream notes = c.containsKey("file") ? new FileOutputStream(c.getString("file"), true) : null;
        if (c.getBooleanValue("orderly")) consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            for (MessageExt m : messages) {
                if (notes != null) { note(notes, m); continue; }
                if (suspending.remove(Base64.getEncoder().encodeToString(m.getBody()))) return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                JSONObject seen = seen(m);
                boolean fails = Math.random() < failPart;
                seen.put("failed", fails);
                box.add(seen);
                if (fails || m.getReconsumeTimes() < failing) return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        else consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                if (notes != null) { note(notes, m); continue; }
                box.add(seen(m));
                if (m.getReconsumeTimes() < failing) {
                    context.setDelayLevelWhenNextConsume(c.getIntValue("level"));
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                if (c.containsKey("replyBy")) reply(c, m);
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        consumers.put(name, consumer);
        return "started";
    }

    /** A line of a file instead of what "received" answers: it is there even if this process is killed. Scripts know its form. */
    private static void note(FileOutputStream notes, MessageExt m) {
        String line = System.nanoTime() + " " + m.getQueueId() + " " + m.getQueueOffset() + " " + new String(m.getBody(), StandardCharsets.UTF_8) + "\n";
        try {
            notes.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (java.io.IOException problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** What has arrived, as soon as there are "atLeast" of them or "timeoutMs" have passed. */
    private Object received(JSONObject c) throws Exception {
        ConcurrentLinkedQueue<JSONObject> box = boxes.get(c.getString("name"));
        long end = System.currentTimeMillis() + c.getLongValue("timeoutMs");
        while (box.size() < c.getIntValue("atLeast") && System.currentTimeMillis() < end) Thread.sleep(10);
        return new ArrayList<>(box);
    }

    /** The queues that the rebalance has given to a consumer, as topic/queue. */
    private Object queues(JSONObject c) {
        Set<String> out = new TreeSet<>();
        for (MessageQueue q : consumers.get(c.getString("name")).getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet())
            out.add(q.getTopic() + "/" + q.getQueueId());
        return out;
    }

    private DefaultMQPullConsumer puller(JSONObject c) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(c.getString("group"), Signed.of(c));
        consumer.setNamesrvAddr(names(c));
        consumer.setInstanceName("puller" + instances++);
        consumer.setMqClientApiTimeout(ANSWER_MS);
        consumer.start();
        return consumer;
    }

    private static MessageQueue queue(JSONObject c) {
        return new MessageQueue(c.getString("topic"), c.getString("broker"), c.getIntValue("queue"));
    }

    /** Let a message that "reader" may read come again to a group. */
    private Object sendBack(JSONObject c) throws Exception {
        DefaultMQPullConsumer reader = puller(c.getJSONObject("reader"));
        DefaultMQPullConsumer consumer = puller(c);
        try {
            learnBroker(consumer, queue(c));
            MessageExt m = reader.pull(queue(c), "*", 0, 1).getMsgFoundList().get(0);
            consumer.sendMessageBack(m, 1, c.getString("broker"), c.getString("group"));
            return "sent";
        } finally {
            consumer.shutdown();
            reader.shutdown();
        }
    }

    /** A pull consumer asks for the broker's address when it needs it for a queue, and not when it sends back. */
    private static void learnBroker(DefaultMQPullConsumer consumer, MessageQueue queue) {
        try {
            consumer.maxOffset(queue);
        } catch (MQClientException refused) {
            Signed.refusals(); // the address is known all the same
        }
    }

    /** How far the broker says that a group is. */
    private Object offset(JSONObject c) throws Exception {
        DefaultMQPullConsumer consumer = puller(c);
        try {
            return consumer.fetchConsumeOffset(queue(c), true);
        } finally {
            consumer.shutdown();
        }
    }

    private Object pull(JSONObject c) throws Exception {
        DefaultMQPullConsumer consumer = puller(c);
        try {
            MessageQueue queue = queue(c);
            JSONObject o = new JSONObject();
            PullResult r = consumer.pull(queue, c.getString("tags"), c.getLongValue("offset"), c.getIntValue("most"));
            o.put("status", r.getPullStatus().name());
            o.put("next", r.getNextBeginOffset());
            o.put("min", r.getMinOffset());
            o.put("max", r.getMaxOffset());
            List<JSONObject> found = new ArrayList<>();
            if (r.getMsgFoundList() != null) for (MessageExt m : r.getMsgFoundList()) found.add(seen(m));
            o.put("messages", found);
            return o;
        } finally {
            consumer.shutdown();
        }
    }

    /** What a lite pull consumer gets until it has "atLeast" or "timeoutMs" have passed. */
    private Object litePull(JSONObject c) throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(c.getString("group"));
        consumer.setNamesrvAddr(namesrv);
        consumer.setInstanceName("lite" + instances++);
        consumer.setMqClientApiTimeout(ANSWER_MS);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(c.getString("topic"), "*");
        consumer.start();
        try {
            List<JSONObject> found = new ArrayList<>();
            long end = System.currentTimeMillis() + c.getLongValue("timeoutMs");
            while (found.size() < c.getIntValue("atLeast") && System.currentTimeMillis() < end)
                for (MessageExt m : consumer.poll(500)) found.add(seen(m));
            return found;
        } finally {
            consumer.shutdown();
        }
    }

    /** Let a broker tell the name server of itself now: 5.3.3 may not find it at the start, and tries again after 10 seconds. */
    private Object announce(JSONObject c) throws Exception {
        Properties permission = new Properties();
        permission.setProperty("brokerPermission", "6");
        admin(c).updateBrokerConfig(c.getString("address"), permission);
        return "announced";
    }

    /** The messages of a topic with a key, or the one with a unique key. */
    private Object query(JSONObject c) throws Exception {
        List<JSONObject> found = new ArrayList<>();
        String topic = c.getString("topic");
        if (c.containsKey("uniqueKey")) {
            found.add(seen(admin(c).viewMessage(topic, c.getString("uniqueKey"))));
            return found;
        }
        QueryResult result = admin(c).queryMessage(topic, c.getString("key"), c.getIntValue("most"), 0, Long.MAX_VALUE);
        for (MessageExt m : result.getMessageList()) found.add(seen(m));
        return found;
    }

    private Object writeCorpus(JSONObject c) throws Exception {
        Corpus.write(producers.get(c.getString("name")), c.getString("broker"), c.getLongValue("from"), c.getLongValue("to"),
            c.getBooleanValue("delays"), c.getString("note"));
        return "written";
    }

    /** All queues of a topic, each to a file of its own in a folder; how many messages. */
    private Object readCorpus(JSONObject c) throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer("corpus");
        consumer.setNamesrvAddr(namesrv);
        consumer.setInstanceName("corpus" + instances++);
        consumer.setMqClientApiTimeout(ANSWER_MS);
        consumer.start();
        try {
            long count = 0;
            List<Long> ends = c.containsKey("ends") ? c.getJSONArray("ends").toJavaList(Long.class) : null;
            String topic = c.getString("topic");
            for (int queue = 0; queue < c.getIntValue("queues"); queue++)
                count += Corpus.read(consumer, topic, c.getString("broker"), queue, c.getString("folder") + "/" + queue, ends);
            return count;
        } finally {
            consumer.shutdown();
        }
    }

    private Object createTopic(JSONObject c) throws Exception {
        admin(c).createAndUpdateTopicConfig(c.getString("address"), new TopicConfig(c.getString("topic"), c.getIntValue("queues"), c.getIntValue("queues"), 6));
        return "created";
    }

    private Object deleteTopic(JSONObject c) throws Exception {
        String topic = c.getString("topic");
        admin().deleteTopicInBroker(Collections.singleton(c.getString("address")), topic);
        Set<String> servers = Collections.singleton(namesrv);
        DefaultMQAdminExt admin = admin();
        try { // 5.x has this form, 4.9 only the other
            DefaultMQAdminExt.class.getMethod("deleteTopicInNameServer", Set.class, String.class).invoke(admin, servers, topic);
        } catch (NoSuchMethodException older) {
            DefaultMQAdminExt.class.getMethod("deleteTopicInNameServer", Set.class, String.class, String.class)
                .invoke(admin, servers, topic, "DefaultCluster");
        }
        return "deleted";
    }

    private Object stop(String name) {
        DefaultMQProducer p = producers.remove(name);
        if (p != null) p.shutdown();
        DefaultMQPushConsumer c = consumers.remove(name);
        if (c != null) c.shutdown();
        return "stopped";
    }
}
