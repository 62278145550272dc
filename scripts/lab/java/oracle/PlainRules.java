import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.JSONArray;
import com.alibaba.fastjson.JSONObject;
import com.alibaba.fastjson.serializer.SerializerFeature;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.acl.common.AclException;
import org.apache.rocketmq.acl.common.AclUtils;
import org.apache.rocketmq.acl.plain.PlainAccessValidator;
import org.apache.rocketmq.acl.plain.PlainPermissionManager;
import org.apache.rocketmq.common.PlainAccessConfig;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/**
 * What RocketMQ's rules of ACL 1.0 say. The argument is an empty folder. Each line is a JSON object: "files" (texts by
 * their paths below the folder), "edits" (requests of operators) and "requests". The answer is a JSON object: "loaded",
 * "edits" (true, false or "threw"), "documents" (all files as they are then) and "answers" (empty: allowed).
 */
public class PlainRules {
    private static Path home;
    private static PlainAccessValidator validator;
    private static PlainPermissionManager manager;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err);
        home = Paths.get(args[0], "home");
        Files.createDirectories(home.resolve("conf/acl"));
        // The watcher of files looks at another folder, where nothing happens.
        Path watched = Paths.get(args[0], "watched");
        Files.createDirectories(watched.resolve("conf/acl"));
        System.setProperty("rocketmq.home.dir", watched.toString());
        validator = new PlainAccessValidator();
        manager = (PlainPermissionManager) field(PlainAccessValidator.class, "aclPlugEngine").get(validator);
        field(PlainPermissionManager.class, "fileHome").set(manager, home.toString());
        field(PlainPermissionManager.class, "defaultAclDir").set(manager, home.resolve("conf/acl").toString());
        field(PlainPermissionManager.class, "defaultAclFile").set(manager, home.resolve("conf/plain_acl.yml").toString());
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(JSON.toJSONString(answer(JSON.parseObject(line)), SerializerFeature.WriteMapNullValue));
        }
        out.flush();
        System.exit(0);
    }

    private static Field field(Class<?> owner, String name) throws Exception {
        Field found = owner.getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }

    private static Map<String, Object> answer(JSONObject question) throws Exception {
        Map<String, Object> answer = new TreeMap<>();
        Files.deleteIfExists(home.resolve("conf/acl/more.yml"));
        for (Map.Entry<String, Object> file : question.getJSONObject("files").entrySet()) {
            Files.write(home.resolve(file.getKey()), file.getValue().toString().getBytes(StandardCharsets.UTF_8));
        }
        try {
            manager.load();
            answer.put("loaded", true);
        } catch (Exception refused) {
            answer.put("loaded", false);
            return answer;
        }
        JSONArray edits = new JSONArray();
        for (Object edit : question.getJSONArray("edits")) {
            try {
                edits.add(edited((JSONObject) edit));
            } catch (Exception thrown) {
                edits.add("threw");
                break;
            }
        }
        answer.put("edits", edits);
        if (!edits.isEmpty()) {
            manager.load();
        }
        Map<String, Object> documents = new TreeMap<>();
        for (String file : question.getJSONObject("files").keySet()) {
            documents.put(file, AclUtils.getYamlDataObject(home.resolve(file).toString(), Map.class));
        }
        answer.put("documents", documents);
        JSONArray answers = new JSONArray();
        for (Object request : question.getJSONArray("requests")) {
            answers.add(decided((JSONObject) request));
        }
        answer.put("answers", answers);
        return answer;
    }

    private static boolean edited(JSONObject edit) {
        switch (edit.getString("kind")) {
            case "update":
                PlainAccessConfig config = new PlainAccessConfig();
                config.setAccessKey(edit.getString("accessKey"));
                config.setSecretKey(edit.getString("secretKey"));
                config.setWhiteRemoteAddress(edit.getString("whiteRemoteAddress"));
                config.setAdmin(Boolean.TRUE.equals(edit.getBoolean("admin")));
                config.setDefaultTopicPerm(edit.getString("defaultTopicPerm"));
                config.setDefaultGroupPerm(edit.getString("defaultGroupPerm"));
                config.setTopicPerms(words(edit.getString("topicPerms")));
                config.setGroupPerms(words(edit.getString("groupPerms")));
                return manager.updateAccessConfig(config);
            case "delete":
                return manager.deleteAccessConfig(edit.getString("accessKey"));
            default:
                String path = edit.getString("aclFileFullPath");
                return manager.updateGlobalWhiteAddrsConfig(
                    words(edit.getString("globalWhiteAddrs")), path.isEmpty() ? path : home.resolve(path).toString());
        }
    }

    /** As UtilAll.split, which the broker calls. */
    private static List<String> words(String text) {
        return text == null ? null : Arrays.asList(text.split(","));
    }

    private static String decided(JSONObject request) {
        RemotingCommand command = RemotingCommand.createRequestCommand(request.getIntValue("code"), null);
        command.setVersion(request.getIntValue("version"));
        if (request.get("fields") != null) {
            HashMap<String, String> fields = new HashMap<>();
            request.getJSONObject("fields").forEach((name, value) -> fields.put(name, value.toString()));
            command.setExtFields(fields);
        }
        command.setBody(Base64.getDecoder().decode(request.getString("body")));
        try {
            validator.validate(validator.parse(command, request.getString("address")));
            return "";
        } catch (AclException refused) {
            return String.valueOf(refused.getMessage());
        } catch (RuntimeException thrown) {
            return "threw " + thrown;
        }
    }
}
