package driver;

import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** RocketMQ's own hook that signs with the account of a command, and besides a note of each answer that is none of success. */
final class Signed implements RPCHook {
    /** Of a name server that does not know a topic. */
    private static final int ROUTE = 105;

    private static final Queue<JSONObject> REFUSALS = new ConcurrentLinkedQueue<>();

    private final RPCHook signs;

    private Signed(RPCHook signs) {
        this.signs = signs;
    }

    /** With "key" and "secret", or only "watched"; null without. */
    static RPCHook of(JSONObject c) {
        if (c.containsKey("secret")) return new Signed(new AclClientRPCHook(new SessionCredentials(c.getString("key"), c.getString("secret"))));
        return c.getBooleanValue("watched") ? new Signed(null) : null;
    }

    /** What stands for an account, where clients are kept. */
    static String name(JSONObject c) {
        String account = c.containsKey("secret") ? c.getString("key") + "/" + c.getString("secret") : "";
        return account + "/" + c.getBooleanValue("watched");
    }

    /** The refusals since it was asked last. */
    static JSONArray refusals() {
        JSONArray found = new JSONArray();
        for (JSONObject each; (each = REFUSALS.poll()) != null; ) found.add(each);
        return found;
    }

    @Override public void doBeforeRequest(String address, RemotingCommand request) {
        if (signs != null) signs.doBeforeRequest(address, request);
    }

    @Override public void doAfterResponse(String address, RemotingCommand request, RemotingCommand response) {
        if (response == null || response.getCode() == 0 || request.getCode() == ROUTE) return;
        JSONObject o = new JSONObject();
        o.put("request", request.getCode());
        o.put("code", response.getCode());
        o.put("remark", response.getRemark());
        REFUSALS.add(o);
    }
}
