import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.broker.filter.MessageEvaluationContext;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.Expression;

/**
 * What RocketMQ's own filters say: each line is an expression and then names and values of properties, in Base64,
 * separated by blanks. The answer: "refused", "true", "false", "null", "threw", or the class of something else.
 */
public class Evaluate {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = System.out;
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split(" ", -1)));
        }
        out.flush();
    }

    private static String answer(String[] words) {
        Expression compiled;
        try {
            compiled = FilterFactory.INSTANCE.get("SQL92").compile(text(words[0]));
        } catch (Throwable refused) {
            return "refused";
        }
        Map<String, String> properties = new HashMap<>();
        for (int i = 1; i + 1 < words.length; i += 2) {
            properties.put(text(words[i]), text(words[i + 1]));
        }
        try {
            Object value = compiled.evaluate(new MessageEvaluationContext(properties));
            return value == null || value instanceof Boolean ? String.valueOf(value) : value.getClass().getName();
        } catch (Throwable thrown) {
            return "threw";
        }
    }

    private static String text(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }
}
