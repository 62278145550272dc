package driver;

import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.Properties;
import java.util.Set;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What an operator asks of brokers and name servers; each answer as the client has read it, in JSON. */
final class Operator {
    private Operator() {
    }

    /** Any method whose arguments JSON has: "method", and "words". */
    static Object call(DefaultMQAdminExt admin, JSONObject c) throws Exception {
        JSONArray words = c.getJSONArray("words");
        for (Method m : DefaultMQAdminExt.class.getMethods()) {
            Class<?>[] types = m.getParameterTypes();
            if (!m.getName().equals(c.getString("method")) || types.length != words.size()) continue;
            Object[] values = new Object[types.length];
            for (int i = 0; i < types.length; i++) values[i] = value(words, i, types[i]);
            try {
                return JSON.toJSON(m.invoke(admin, values));
            } catch (InvocationTargetException problem) {
                throw (Exception) problem.getCause();
            }
        }
        throw new IllegalArgumentException(c.getString("method"));
    }

    private static Object value(JSONArray words, int at, Class<?> type) {
        if (type == Set.class) return new HashSet<>(words.getJSONArray(at));
        if (type != Properties.class) return words.getObject(at, type);
        Properties properties = new Properties();
        properties.putAll(words.getJSONObject(at));
        return properties;
    }

    static Object ask(DefaultMQAdminExt admin, JSONObject c) throws Exception {
        String topic = c.getString("topic");
        String group = c.getString("group");
        String address = c.getString("address");
        MessageQueue queue = new MessageQueue(topic, c.getString("broker"), c.getIntValue("queue"));
        switch (c.getString("question")) {
            case "route": return JSON.toJSON(admin.examineTopicRouteInfo(topic));
            case "topics": return JSON.toJSON(admin.fetchAllTopicList().getTopicList());
            case "topicConfig": return JSON.toJSON(admin.examineTopicConfig(address, topic));
            case "topicStats": return JSON.toJSON(admin.examineTopicStats(topic).getOffsetTable());
            case "groupConfig": return JSON.toJSON(admin.examineSubscriptionGroupConfig(address, group));
            case "consumeStats": return JSON.toJSON(admin.examineConsumeStats(group, topic).getOffsetTable());
            case "connections": return JSON.toJSON(admin.examineConsumerConnectionInfo(group));
            case "producers": return JSON.toJSON(admin.examineProducerConnectionInfo(group, topic).getConnectionSet());
            case "runningInfo": return JSON.toJSON(admin.getConsumerRunningInfo(group, c.getString("client"), false));
            case "consumeStatus": return JSON.toJSON(admin.getConsumeStatus(topic, group, ""));
            case "directly": return JSON.toJSON(admin.consumeMessageDirectly(group, c.getString("client"), topic, c.getString("message")));
            case "groups": return JSON.toJSON(admin.queryTopicConsumeByWho(topic).getGroupList());
            case "runtime": return JSON.toJSON(admin.fetchBrokerRuntimeStats(address).getTable());
            case "settings": return JSON.toJSON(admin.getBrokerConfig(address));
            case "minOffset": return admin.minOffset(queue);
            case "maxOffset": return admin.maxOffset(queue);
            case "searchOffset": return admin.searchOffset(queue, c.getLongValue("time"));
            case "reset": return JSON.toJSON(admin.resetOffsetByTimestamp(topic, group, c.getLongValue("time"), true));
            case "view": return admin.viewMessage(topic, c.getString("message")).getMsgId();
            default: throw new IllegalArgumentException(c.getString("question"));
        }
    }
}
