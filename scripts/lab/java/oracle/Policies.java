import apache.rocketmq.v2.AckMessageRequest;
import apache.rocketmq.v2.ChangeInvisibleDurationRequest;
import apache.rocketmq.v2.EndTransactionRequest;
import apache.rocketmq.v2.ForwardMessageToDeadLetterQueueRequest;
import apache.rocketmq.v2.HeartbeatRequest;
import apache.rocketmq.v2.NotifyClientTerminationRequest;
import apache.rocketmq.v2.QueryAssignmentRequest;
import apache.rocketmq.v2.QueryRouteRequest;
import apache.rocketmq.v2.RecallMessageRequest;
import apache.rocketmq.v2.ReceiveMessageRequest;
import apache.rocketmq.v2.SendMessageRequest;
import apache.rocketmq.v2.TelemetryCommand;
import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONArray;
import com.alibaba.fastjson2.JSONObject;
import com.google.protobuf.GeneratedMessageV3;
import com.google.protobuf.Parser;
import io.grpc.Metadata;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.acl.common.AclException;
import org.apache.rocketmq.auth.authentication.AuthenticationEvaluator;
import org.apache.rocketmq.auth.authentication.exception.AuthenticationException;
import org.apache.rocketmq.auth.authentication.factory.AuthenticationFactory;
import org.apache.rocketmq.auth.authentication.manager.AuthenticationMetadataManager;
import org.apache.rocketmq.auth.authentication.model.Subject;
import org.apache.rocketmq.auth.authentication.model.User;
import org.apache.rocketmq.auth.authorization.AuthorizationEvaluator;
import org.apache.rocketmq.auth.authorization.enums.PolicyType;
import org.apache.rocketmq.auth.authorization.exception.AuthorizationException;
import org.apache.rocketmq.auth.authorization.factory.AuthorizationFactory;
import org.apache.rocketmq.auth.authorization.manager.AuthorizationMetadataManager;
import org.apache.rocketmq.auth.authorization.model.Acl;
import org.apache.rocketmq.auth.authorization.model.Resource;
import org.apache.rocketmq.auth.config.AuthConfig;
import org.apache.rocketmq.auth.migration.AuthMigrator;
import org.apache.rocketmq.broker.auth.converter.AclConverter;
import org.apache.rocketmq.broker.auth.converter.UserConverter;
import org.apache.rocketmq.common.constant.GrpcConstants;
import org.apache.rocketmq.common.utils.ExceptionUtils;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestHeaderRegistry;
import org.apache.rocketmq.remoting.protocol.body.AclInfo;
import org.apache.rocketmq.remoting.protocol.body.UserInfo;

/**
 * What RocketMQ's rules of ACL 2.0 say. The argument is an empty folder. Each line is a JSON object: "edits" of
 * operators, "requests" and "calls" of gRPC. The answer is a JSON object: "edits", "requests" and "calls" (empty: done,
 * or allowed), "users" and "acls" (all as they are after the edits).
 */
public class Policies {
    private static Path home;
    private static AuthConfig config;
    private static AuthenticationMetadataManager users;
    private static AuthorizationMetadataManager acls;
    private static AuthenticationEvaluator authentication;
    private static AuthorizationEvaluator authorization;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err);
        home = Paths.get(args[0]);
        Files.createDirectories(home.resolve("conf"));
        System.setProperty("rocketmq.home.dir", home.toString());
        RequestHeaderRegistry.getInstance().initialize();
        config = new AuthConfig();
        config.setConfigName("oracle");
        config.setClusterName("own");
        config.setAuthConfigPath(home.resolve("auth").toString());
        config.setAuthenticationEnabled(true);
        config.setAuthorizationEnabled(true);
        config.setMigrateAuthFromV1Enabled(true);
        String metadata = "org.apache.rocketmq.auth.%s.provider.Local%sMetadataProvider";
        config.setAuthenticationMetadataProvider(String.format(metadata, "authentication", "Authentication"));
        config.setAuthorizationMetadataProvider(String.format(metadata, "authorization", "Authorization"));
        users = AuthenticationFactory.getMetadataManager(config);
        acls = AuthorizationFactory.getMetadataManager(config);
        authentication = new AuthenticationEvaluator(config);
        authorization = new AuthorizationEvaluator(config);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.toJSONString(answer(JSON.parseObject(line))));
        }
        out.flush();
        System.exit(0);
    }

    private static Map<String, Object> answer(JSONObject question) throws Exception {
        Map<String, Object> answer = new TreeMap<>();
        answer.put("edits", answers(question.getJSONArray("edits"), Policies::edit));
        answer.put("requests", answers(question.getJSONArray("requests"), Policies::decide));
        answer.put("calls", answers(question.getJSONArray("calls"), Policies::decideCall));
        List<User> all = users.listUser(null).join();
        answer.put("users", UserConverter.convertUsers(all));
        List<AclInfo> policies = AclConverter.convertAcls(acls.listAcl(null, null).join());
        answer.put("acls", policies == null ? new JSONArray() : policies);
        String text = JSON.toJSONString(answer);
        for (User user : all) {
            users.deleteUser(user.getUsername()).join();
        }
        return JSON.parseObject(text);
    }

    private interface Step {
        void take(JSONObject what) throws Exception;
    }

    private static JSONArray answers(JSONArray all, Step step) {
        JSONArray found = new JSONArray();
        for (Object each : all) {
            try {
                step.take((JSONObject) each);
                found.add("");
            } catch (Throwable thrown) {
                Throwable real = ExceptionUtils.getRealException(thrown);
                boolean said = real instanceof AuthenticationException || real instanceof AuthorizationException
                    || real instanceof AclException;
                found.add(said ? real.getMessage() : "threw");
            }
        }
        return found;
    }

    private static void edit(JSONObject what) throws Exception {
        Subject subject = Subject.of(what.getString("subject"));
        CompletableFuture<Void> done;
        switch (what.getString("kind")) {
            case "createUser":
                done = users.createUser(user(what));
                break;
            case "updateUser":
                done = users.updateUser(user(what));
                break;
            case "deleteUser":
                done = users.deleteUser(what.getString("username"));
                break;
            case "deleteAcl":
                done = acls.deleteAcl(subject, PolicyType.getByName(what.getString("policyType")),
                    Resource.of(what.getString("resource")));
                break;
            case "migrate":
                Files.write(home.resolve("conf/plain_acl.yml"), what.getString("text").getBytes(StandardCharsets.UTF_8));
                new AuthMigrator(config).migrate();
                return;
            default:
                Acl acl = AclConverter.convertAcl(what.getObject("body", AclInfo.class));
                if (acl.getSubject() == null) {
                    acl.setSubject(subject);
                }
                done = what.getString("kind").equals("createAcl") ? acls.createAcl(acl) : acls.updateAcl(acl);
        }
        done.join();
    }

    private static User user(JSONObject what) {
        UserInfo info = what.getObject("body", UserInfo.class);
        info.setUsername(what.getString("username"));
        return UserConverter.convertUser(info);
    }

    private static void decide(JSONObject request) throws Exception {
        RemotingCommand command = RemotingCommand.createRequestCommand(request.getIntValue("code"), null);
        command.setVersion(request.getIntValue("version"));
        if (request.get("fields") != null) {
            HashMap<String, String> fields = new HashMap<>();
            request.getJSONObject("fields").forEach((name, value) -> fields.put(name, value.toString()));
            command.setExtFields(fields);
        }
        command.setBody(Base64.getDecoder().decode(request.getString("body")));
        ChannelHandlerContext context = new Peer(request.getString("source")).pipeline().firstContext();
        authentication.evaluate(AuthenticationFactory.newContext(config, context, command));
        authorization.evaluate(AuthorizationFactory.newContexts(config, context, command));
    }

    private static void decideCall(JSONObject call) throws Exception {
        Metadata metadata = new Metadata();
        put(metadata, GrpcConstants.AUTHORIZATION, call.getString("authorization"));
        put(metadata, GrpcConstants.DATE_TIME, call.getString("date"));
        put(metadata, GrpcConstants.REMOTE_ADDRESS, call.getString("source") + ":54321");
        put(metadata, GrpcConstants.CHANNEL_ID, "channel");
        GeneratedMessageV3 message =
            PARSERS.get(call.getString("name")).parseFrom(Base64.getDecoder().decode(call.getString("message")));
        authentication.evaluate(AuthenticationFactory.newContext(config, metadata, message));
        // As the Proxy does it, once the caller is known.
        put(metadata, GrpcConstants.AUTHORIZATION_AK, call.getString("user"));
        authorization.evaluate(AuthorizationFactory.newContexts(config, metadata, message));
    }

    private static void put(Metadata metadata, Metadata.Key<String> key, String value) {
        if (value != null) {
            metadata.put(key, value);
        }
    }

    private static final Map<String, Parser<? extends GeneratedMessageV3>> PARSERS = new HashMap<>();

    static {
        PARSERS.put("AckMessageRequest", AckMessageRequest.parser());
        PARSERS.put("ChangeInvisibleDurationRequest", ChangeInvisibleDurationRequest.parser());
        PARSERS.put("EndTransactionRequest", EndTransactionRequest.parser());
        PARSERS.put("ForwardMessageToDeadLetterQueueRequest", ForwardMessageToDeadLetterQueueRequest.parser());
        PARSERS.put("HeartbeatRequest", HeartbeatRequest.parser());
        PARSERS.put("NotifyClientTerminationRequest", NotifyClientTerminationRequest.parser());
        PARSERS.put("QueryAssignmentRequest", QueryAssignmentRequest.parser());
        PARSERS.put("QueryRouteRequest", QueryRouteRequest.parser());
        PARSERS.put("RecallMessageRequest", RecallMessageRequest.parser());
        PARSERS.put("ReceiveMessageRequest", ReceiveMessageRequest.parser());
        PARSERS.put("SendMessageRequest", SendMessageRequest.parser());
        PARSERS.put("TelemetryCommand", TelemetryCommand.parser());
    }

    /** A connection of a client with an address. */
    private static class Peer extends EmbeddedChannel {
        private final String source;

        Peer(String source) {
            super(new ChannelInboundHandlerAdapter());
            this.source = source;
        }

        @Override
        protected SocketAddress remoteAddress0() {
            try {
                return source == null ? null : new InetSocketAddress(InetAddress.getByName(source), 54321);
            } catch (Exception unknown) {
                throw new IllegalStateException(unknown);
            }
        }
    }
}
