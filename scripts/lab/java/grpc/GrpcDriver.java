import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientConfigurationBuilder;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.StaticSessionCredentialsProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.ProducerBuilder;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;
import org.apache.rocketmq.shaded.com.google.gson.JsonArray;
import org.apache.rocketmq.shaded.com.google.gson.JsonElement;
import org.apache.rocketmq.shaded.com.google.gson.JsonNull;
import org.apache.rocketmq.shaded.com.google.gson.JsonObject;
import org.apache.rocketmq.shaded.com.google.gson.JsonParser;
import org.apache.rocketmq.shaded.com.google.gson.JsonPrimitive;

/**
 * The official gRPC client on a lead: reads one JSON command a line, does it, answers one JSON line, as driver.Driver does for
 * remoting. It decides nothing. The same commands are in ../../node/driver.js.
 */
public final class GrpcDriver {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();

    private final ClientConfiguration configuration;
    private final Map<String, Closeable> started = new HashMap<>();
    private final Map<String, ConcurrentLinkedQueue<JsonObject>> boxes = new ConcurrentHashMap<>();
    private final Map<String, MessageView> held = new HashMap<>();

    private GrpcDriver(String endpoints, boolean isTls, String... account) {
        ClientConfigurationBuilder builder = ClientConfiguration.newBuilder().setEndpoints(endpoints)
            .setRequestTimeout(Duration.ofSeconds(20));
        if (account.length == 2) {
            builder.setCredentialProvider(new StaticSessionCredentialsProvider(account[0], account[1]));
        }
        // TLS is its default, and it checks no certificate.
        configuration = (isTls ? builder : builder.enableSsl(false)).build();
    }

    public static void main(String[] words) throws Exception {
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        System.setOut(System.err);
        String[] account = words.length > 2 ? Arrays.copyOfRange(words, 2, words.length) : new String[0];
        GrpcDriver driver = new GrpcDriver(words[0], words.length > 1 && words[1].equals("tls"), account);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            JsonObject answer = new JsonObject();
            try {
                answer.add("ok", driver.carryOut(JsonParser.parseString(line).getAsJsonObject()));
            } catch (Throwable problem) {
                describe(problem, answer);
            }
            out.println(answer);
        }
        System.exit(0);
    }

    private static void describe(Throwable problem, JsonObject into) {
        int code = 0;
        String text = String.valueOf(problem.getMessage());
        for (Throwable t = problem; t != null && code == 0; t = t.getCause()) {
            if (!(t instanceof ClientException)) continue;
            String words = String.valueOf(t.getMessage());
            int at = words.indexOf("response-code=");
            if (at >= 0) code = Integer.parseInt(words.substring(at + 14).split("\\D")[0]);
            text = words;
        }
        into.addProperty("error", problem.getClass().getSimpleName());
        into.addProperty("code", code);
        into.addProperty("text", text);
    }

    private JsonElement carryOut(JsonObject c) throws Exception {
        String what = text(c, "do");
        switch (what) {
            case "producer": return startProducer(c);
            case "send": return send(c);
            case "recall": return recall(c);
            case "push": return startPush(c);
            case "received": return received(c);
            case "simple": return startSimple(c);
            case "receive": return receive(c);
            case "ack": simple(c).ack(held.remove(text(c, "id"))); return JsonNull.INSTANCE;
            case "invisible": return invisible(c);
            case "stop": started.remove(text(c, "name")).close(); return JsonNull.INSTANCE;
            default: throw new IllegalArgumentException(what);
        }
    }

    private static String text(JsonObject c, String name) {
        JsonElement found = c.get(name);
        return found == null || found.isJsonNull() ? null : found.getAsString();
    }

    private static long number(JsonObject c, String name, long otherwise) {
        return c.has(name) ? c.get(name).getAsLong() : otherwise;
    }

    private JsonElement startProducer(JsonObject c) throws ClientException {
        String name = text(c, "name");
        ConcurrentLinkedQueue<JsonObject> asked = new ConcurrentLinkedQueue<>();
        ProducerBuilder builder = PROVIDER.newProducerBuilder().setClientConfiguration(configuration)
            .setTopics(text(c, "topic")).setMaxAttempts((int) number(c, "attempts", 3));
        if (c.has("checks")) {
            builder.setTransactionChecker(message -> {
                asked.add(shown(message));
                String end = message.getProperties().get("checked");
                return end.equals("nothing") ? TransactionResolution.UNKNOWN : TransactionResolution.valueOf(end);
            });
        }
        started.put(name, builder.build());
        boxes.put(name, asked);
        return JsonNull.INSTANCE;
    }

    private JsonElement send(JsonObject c) throws ClientException {
        Producer producer = (Producer) started.get(text(c, "name"));
        MessageBuilder builder = PROVIDER.newMessageBuilder().setTopic(text(c, "topic"))
            .setBody(Base64.getDecoder().decode(text(c, "body")));
        if (c.has("tag")) builder.setTag(text(c, "tag"));
        if (c.has("keys")) builder.setKeys(text(c, "keys").split(" "));
        if (c.has("group")) builder.setMessageGroup(text(c, "group"));
        if (c.has("delayMs")) builder.setDeliveryTimestamp(System.currentTimeMillis() + number(c, "delayMs", 0));
        if (c.has("properties")) {
            for (Map.Entry<String, JsonElement> each : c.getAsJsonObject("properties").entrySet()) {
                builder.addProperty(each.getKey(), each.getValue().getAsString());
            }
        }
        Message message = builder.build();
        SendReceipt receipt;
        if (c.has("local")) {
            Transaction transaction = producer.beginTransaction();
            receipt = producer.send(message, transaction);
            if (text(c, "local").equals("COMMIT")) transaction.commit();
            if (text(c, "local").equals("ROLLBACK")) transaction.rollback();
        } else {
            receipt = producer.send(message);
        }
        JsonObject answer = new JsonObject();
        answer.addProperty("id", receipt.getMessageId().toString());
        answer.addProperty("handle", receipt.getRecallHandle());
        return answer;
    }

    private JsonElement recall(JsonObject c) throws ClientException {
        Producer producer = (Producer) started.get(text(c, "name"));
        return new JsonPrimitive(producer.recallMessage(text(c, "topic"), text(c, "handle")).getMessageId().toString());
    }

    private static Map<String, FilterExpression> wanted(JsonObject c) {
        String expression = c.has("expression") ? text(c, "expression") : "*";
        FilterExpressionType type = FilterExpressionType.valueOf(c.has("kind") ? text(c, "kind") : "TAG");
        return Collections.singletonMap(text(c, "topic"), new FilterExpression(expression, type));
    }

    private JsonElement startPush(JsonObject c) throws ClientException, IOException {
        String name = text(c, "name");
        long fails = number(c, "fails", 0);
        long slowMs = number(c, "slowMs", 0);
        // Where lines go, of a consumer that has too many messages for a box: body, time.
        PrintStream lines = c.has("file") ? new PrintStream(text(c, "file"), "UTF-8") : null;
        ConcurrentLinkedQueue<JsonObject> box = new ConcurrentLinkedQueue<>();
        boxes.put(name, box);
        started.put(name, PROVIDER.newPushConsumerBuilder().setClientConfiguration(configuration)
            .setConsumerGroup(text(c, "group")).setSubscriptionExpressions(wanted(c)).setConsumptionThreadCount(4)
            .setMessageListener(message -> {
                if (lines == null) {
                    box.add(shown(message));
                } else {
                    String body = StandardCharsets.UTF_8.decode(message.getBody()).toString();
                    lines.println(body + " " + System.currentTimeMillis());
                }
                rest(slowMs);
                boolean isBad = message.getProperties().containsKey("bad") && message.getDeliveryAttempt() <= fails;
                return isBad ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
            }).build());
        return JsonNull.INSTANCE;
    }

    private static void rest(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private JsonElement received(JsonObject c) throws InterruptedException {
        ConcurrentLinkedQueue<JsonObject> box = boxes.get(text(c, "name"));
        long end = System.currentTimeMillis() + number(c, "timeoutMs", 0);
        while (box.size() < number(c, "atLeast", 0) && System.currentTimeMillis() < end) Thread.sleep(5);
        JsonArray found = new JsonArray();
        box.forEach(found::add);
        return found;
    }

    private SimpleConsumer simple(JsonObject c) {
        return (SimpleConsumer) started.get(text(c, "name"));
    }

    private JsonElement startSimple(JsonObject c) throws ClientException {
        started.put(text(c, "name"), PROVIDER.newSimpleConsumerBuilder().setClientConfiguration(configuration)
            .setConsumerGroup(text(c, "group")).setSubscriptionExpressions(wanted(c))
            .setAwaitDuration(Duration.ofMillis(number(c, "awaitMs", 5000))).build());
        return JsonNull.INSTANCE;
    }

    private JsonElement receive(JsonObject c) throws ClientException {
        JsonArray found = new JsonArray();
        Duration invisible = Duration.ofMillis(number(c, "invisibleMs", 15000));
        for (MessageView message : simple(c).receive((int) number(c, "most", 16), invisible)) {
            held.put(message.getMessageId().toString(), message);
            found.add(shown(message));
        }
        return found;
    }

    private JsonElement invisible(JsonObject c) throws ClientException {
        simple(c).changeInvisibleDuration(held.get(text(c, "id")), Duration.ofMillis(number(c, "ms", 0)));
        return JsonNull.INSTANCE;
    }

    private static JsonObject shown(MessageView message) {
        JsonObject shown = new JsonObject();
        ByteBuffer body = message.getBody();
        byte[] bytes = new byte[body.remaining()];
        body.get(bytes);
        JsonObject properties = new JsonObject();
        message.getProperties().forEach(properties::addProperty);
        shown.addProperty("id", message.getMessageId().toString());
        shown.addProperty("topic", message.getTopic());
        shown.addProperty("body", Base64.getEncoder().encodeToString(bytes));
        shown.addProperty("tag", message.getTag().orElse(null));
        shown.addProperty("keys", String.join(" ", message.getKeys()));
        shown.addProperty("group", message.getMessageGroup().orElse(null));
        shown.addProperty("times", message.getDeliveryAttempt());
        shown.addProperty("born", message.getBornTimestamp());
        shown.addProperty("at", System.currentTimeMillis());
        shown.add("properties", properties);
        return shown;
    }
}
