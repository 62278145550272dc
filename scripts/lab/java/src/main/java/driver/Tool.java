package driver;

import com.alibaba.fastjson.JSONObject;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.util.Collection;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/** The official command line, mqadmin, in this process: one command at a time, and what it prints. */
final class Tool {
    /** How long one that was interrupted may take to end; nothing is asserted about it. */
    private static final long MAX_MS = 30_000;

    private Tool() {
    }

    /**
     * Some run until somebody ends them: one that has printed as many "lines", if that is not 0, is interrupted, and one that runs
     * longer than "timeoutMs".
     */
    static Object run(JSONObject c) throws Exception {
        forget();
        String[] words = c.getJSONArray("words").toArray(new String[0]);
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        ByteArrayOutputStream complaints = new ByteArrayOutputStream();
        int lines = c.getIntValue("lines");
        Thread thread = new Thread(() -> MQAdminStartup.main0(words, null), "mqadmin");
        thread.setDaemon(true);
        System.setOut(new PrintStream(printed, true, "UTF-8"));
        System.setErr(new PrintStream(complaints, true, "UTF-8"));
        long begun = System.currentTimeMillis();
        try {
            thread.start();
            watch(thread, begun + c.getLongValue("timeoutMs"), () -> lines > 0 && lines(printed) >= lines);
            for (long end = System.currentTimeMillis() + MAX_MS; thread.isAlive() && System.currentTimeMillis() < end; ) {
                thread.interrupt(); // again: a send takes an interrupt for a failure
                watch(thread, System.currentTimeMillis() + 200, () -> false);
            }
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        JSONObject o = new JSONObject();
        o.put("printed", printed.toString("UTF-8"));
        o.put("complaints", complaints.toString("UTF-8"));
        o.put("ms", System.currentTimeMillis() - begun);
        o.put("ended", !thread.isAlive());
        return o;
    }

    /** Each command is made anew, as in a process of its own: some keep the producer that they have started. */
    private static void forget() throws Exception {
        for (Field field : MQAdminStartup.class.getDeclaredFields()) {
            if (!Collection.class.isAssignableFrom(field.getType())) continue;
            field.setAccessible(true);
            ((List<?>) field.get(null)).clear();
        }
    }

    private static long lines(ByteArrayOutputStream printed) {
        return printed.toString().chars().filter(each -> each == '\n').count();
    }

    /** Wait for the end, or until it is enough. A client that stops may wait three seconds for a thread that only an interrupt wakes. */
    private static void watch(Thread thread, long until, BooleanSupplier enough) throws InterruptedException {
        while (thread.isAlive() && System.currentTimeMillis() < until && !enough.getAsBoolean()) {
            thread.join(20);
            for (StackTraceElement at : thread.getStackTrace()) {
                if (!at.getClassName().endsWith(".ServiceThread") || !at.getMethodName().equals("shutdown")) continue;
                for (Thread each : Thread.getAllStackTraces().keySet()) if (each.getName().contains("NettyEventExecutor")) each.interrupt();
                break;
            }
        }
    }
}
