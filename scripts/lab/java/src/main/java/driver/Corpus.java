package driver;

import java.io.BufferedWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Many messages, each made from its number alone: scripts/torture/corpus.py makes the same. What was sent where, and what a
 * pull consumer sees, goes to files with a line a message; nothing is judged here.
 */
final class Corpus {
    static final int RUN = 16;
    static final int QUEUES = 4;
    static final String[] TOPICS = {"HandoverA", "HandoverB", "HandoverC"};
    private static final int UNDER_WAY = 256;
    private static final byte[] TEXT = text(1 << 21);

    private Corpus() {
    }

    /** 64 random bits for a number: the output function of SplitMix64. */
    static long mix(long n) {
        long z = (n + 1) * 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    private static byte[] text(int size) {
        byte[] all = new byte[size];
        for (int i = 0; i < size; i++) all[i] = (byte) ('0' + (mix(i / 8) >>> (56 - i % 8 * 8) & 63));
        return all;
    }

    /** Messages come in runs of 16, which share a topic, a queue, and whether they are sent as one batch. */
    private static long run(long n) {
        return mix(n / RUN + (1L << 40));
    }

    static String topic(long n) {
        return TOPICS[(int) ((run(n) & 0xFF) % TOPICS.length)];
    }

    static int queue(long n) {
        return (int) ((run(n) >>> 8) & 0xFF) % QUEUES;
    }

    static boolean batched(long n) {
        return ((run(n) >>> 16) & 3) == 0;
    }

    private static int size(long n, long z, boolean batched) {
        if (!batched && n % 10000 == 9999) return 1 << 20;
        int kind = (int) (z & 15);
        int mask = kind < 12 ? 0x1FF : kind < 15 || batched ? 0xFFF : 0x1FFF;
        return 1 + (int) ((z >>> 4) & mask);
    }

    static Message message(long n, boolean delays) {
        long z = mix(n);
        boolean batched = batched(n);
        int size = size(n, z, batched);
        byte[] body = new byte[size];
        System.arraycopy(TEXT, (int) ((z >>> 20) % (TEXT.length - size)), body, 0, size);
        Message m = new Message(topic(n), body);
        m.setFlag((int) (z & 0x7FFFFFFF));
        if (((z >>> 40) & 7) != 0) m.setTags("tag" + ((z >>> 40) & 7));
        int keys = (int) ((z >>> 43) & 3);
        String[] some = {"k" + n, "g" + n % 997, "\u4e2d" + n % 31};
        if (keys > 0) m.setKeys(String.join(" ", java.util.Arrays.copyOf(some, keys)));
        int properties = (int) ((z >>> 45) & 3);
        m.putUserProperty("n", String.valueOf(n));
        if (properties > 0) m.putUserProperty("p0", Long.toHexString(z));
        if (properties > 1) m.putUserProperty("p1", "\u00e9\u4e2d\ud83d\ude80" + n);
        if (properties > 2) m.putUserProperty("p2", new String(new char[1 + (int) ((z >>> 47) & 63)]).replace('\0', 'x'));
        if (delays && !batched && ((z >>> 53) & 31) == 0) m.setDelayTimeLevel(Math.max(1, (int) ((z >>> 58) & 3)));
        return m;
    }

    private interface Lookup {
        Object of(String topic) throws MQClientException;
    }

    /** A topic that was just made, or whose broker just came up, is known to the name server a little later. */
    private static void await(Lookup lookup, String topic) throws Exception {
        for (int left = 200; ; left--) {
            try {
                lookup.of(topic);
                return;
            } catch (MQClientException unknown) {
                if (left == 0) throw unknown;
                Thread.sleep(50);
            }
        }
    }

    /** Send the messages of the numbers from .. to - 1; a line each: number, queue, queue offset, unique key. */
    static void write(DefaultMQProducer p, String broker, long from, long to, boolean delays, String note) throws Exception {
        for (String topic : TOPICS) await(p::fetchPublishMessageQueues, topic);
        Semaphore free = new Semaphore(UNDER_WAY);
        AtomicReference<Throwable> problem = new AtomicReference<>();
        try (BufferedWriter out = Files.newBufferedWriter(Paths.get(note), StandardCharsets.UTF_8)) {
            for (long n = from; n < to && problem.get() == null; ) {
                MessageQueue queue = new MessageQueue(topic(n), broker, queue(n));
                if (!batched(n)) {
                    long number = n;
                    free.acquire();
                    p.send(message(n, delays), queue, new SendCallback() {
                        @Override public void onSuccess(SendResult r) {
                            try {
                                noted(out, r, number, 1);
                            } catch (Throwable t) {
                                problem.set(t);
                            }
                            free.release();
                        }

                        @Override public void onException(Throwable t) {
                            problem.set(t);
                            free.release();
                        }
                    }, 20000);
                    n++;
                    continue;
                }
                List<Message> batch = new ArrayList<>();
                long end = Math.min(to, n - n % RUN + RUN);
                for (long i = n; i < end; i++) batch.add(message(i, delays));
                noted(out, p.send(batch, queue, 20000), n, batch.size());
                n = end;
            }
            if (!free.tryAcquire(UNDER_WAY, 60, TimeUnit.SECONDS)) throw new IllegalStateException("sends without an answer");
        }
        if (problem.get() != null) throw new IllegalStateException(problem.get());
    }

    private static void noted(BufferedWriter out, SendResult r, long n, int count) throws Exception {
        if (r.getSendStatus() != SendStatus.SEND_OK) throw new IllegalStateException(r.toString());
        String[] ids = r.getMsgId().split(",");
        synchronized (out) {
            for (int i = 0; i < count; i++)
                out.write((n + i) + "\t" + r.getMessageQueue().getQueueId() + "\t" + (r.getQueueOffset() + i) + "\t" + ids[i] + "\n");
        }
    }

    /**
     * Pull all of a queue; a line each: queue, queue offset, unique key, level of its delay, and what it is, tab separated.
     *
     * @param ends of all queues; null to ask the master, without which this client does not know where a queue ends
     */
    static long read(DefaultMQPullConsumer c, String topic, String broker, int queue, String note, List<Long> ends) throws Exception {
        await(c::fetchSubscribeMessageQueues, topic);
        MessageQueue from = new MessageQueue(topic, broker, queue);
        long offset = ends == null ? c.minOffset(from) : 0;
        long end = ends == null ? c.maxOffset(from) : ends.get(queue);
        long count = 0;
        try (BufferedWriter out = Files.newBufferedWriter(Paths.get(note), StandardCharsets.UTF_8)) {
            while (offset < end) {
                PullResult r = c.pull(from, "*", offset, 32);
                if (r.getPullStatus() != PullStatus.FOUND) throw new IllegalStateException(from + " at " + offset + ": " + r);
                for (MessageExt m : r.getMsgFoundList()) {
                    out.write(seen(m));
                    count++;
                }
                offset = r.getNextBeginOffset();
            }
        }
        return count;
    }

    private static String seen(MessageExt m) {
        CRC32 crc = new CRC32();
        crc.update(m.getBody());
        String[] parts = {
            String.valueOf(m.getQueueId()), String.valueOf(m.getQueueOffset()), m.getMsgId(), String.valueOf(m.getDelayTimeLevel()),
            m.getProperty("n"), m.getTopic(), String.valueOf(m.getFlag()), String.valueOf(m.getBody().length),
            String.valueOf(crc.getValue()), m.getTags(), m.getKeys(), m.getProperty("p0"), m.getProperty("p1"), m.getProperty("p2")};
        for (int i = 0; i < parts.length; i++) if (parts[i] == null) parts[i] = "";
        return String.join("\t", parts) + "\n";
    }
}
