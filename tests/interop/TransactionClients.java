// Transactions with Kafka's own client: `bank`, `move` and `zombie` are what test_transactions_java.py asks for.
// Lines on the standard output say what was committed or which exception came.

import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.errors.*;

public class TransactionClients {
    static final Duration POLL = Duration.ofMillis(50);
    static final int ABORT_EVERY = 4;
    static final List<KafkaProducer<String, String>> PRODUCERS = new CopyOnWriteArrayList<>();
    static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[1];
        try {
            switch (arguments[0]) {
                case "bank" -> bank(arguments[2], arguments[3], Integer.parseInt(arguments[4]));
                case "move" -> move(arguments[2], arguments[3], arguments[4], arguments[5],
                        Integer.parseInt(arguments[6]));
                case "zombie" -> zombie(arguments[2], arguments[3]);
                default -> throw new IllegalArgumentException(arguments[0]);
            }
        } finally {
            PRODUCERS.forEach(producer -> producer.close(Duration.ZERO));  // zombies have threads too
        }
    }

    static KafkaProducer<String, String> producer(String id) {
        Properties settings = new Properties();
        String strings = "org.apache.kafka.common.serialization.StringSerializer";
        settings.put("bootstrap.servers", servers);
        settings.put("transactional.id", id);
        settings.put("key.serializer", strings);
        settings.put("value.serializer", strings);
        KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
        PRODUCERS.add(producer);
        producer.initTransactions();
        return producer;
    }

    static void send(KafkaProducer<String, String> producer, String topic, int partition, String value) {
        producer.send(new ProducerRecord<>(topic, partition, null, value));
    }

    /** Every third transfer is aborted. */
    static void bank(String topic, String id, int transfers) {
        Random dice = new Random(1);
        try (KafkaProducer<String, String> producer = producer(id)) {
            for (int number = 0; number < transfers; number++) {
                int giver = dice.nextInt(4), taker = (giver + 1 + dice.nextInt(3)) % 4;
                int amount = 1 + dice.nextInt(100);
                producer.beginTransaction();
                send(producer, topic, giver, number + " " + -amount);
                send(producer, topic, taker, number + " " + amount);
                // A commit may overtake batches in the client itself: its sender looks whether there are any, and
                // only then takes up what is to be sent next.
                producer.flush();
                if (number % 3 == 2) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                    System.out.println(number);
                }
            }
        }
    }

    static void zombie(String topic, String id) throws Exception {
        KafkaProducer<String, String> older = producer(id);
        older.beginTransaction();
        older.send(new ProducerRecord<>(topic, 0, null, "from the grave")).get();
        KafkaProducer<String, String> newer = producer(id);
        try {
            older.commitTransaction();
            System.out.println("committed");
        } catch (ProducerFencedException | InvalidProducerEpochException error) {
            System.out.println("fenced");
        }
        newer.beginTransaction();
        send(newer, topic, 0, "alive");
        newer.flush();
        newer.commitTransaction();
    }

    /** One worker dies within a transaction; then it comes again, and shares its group with another one. */
    static void move(String source, String sink, String group, String protocol, int count) throws Exception {
        AtomicInteger moved = new AtomicInteger();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        CountDownLatch death = new CountDownLatch(1);
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 2; number++) {
            String id = group + "-" + number;
            boolean dies = number == 0;
            Thread thread = new Thread(() -> {
                try {
                    if (dies) {
                        new Worker(source, sink, group, protocol, id, moved, count).live(3);
                        death.countDown();
                    }
                    death.await();
                    new Worker(source, sink, group, protocol, id, moved, count).live(-1);
                } catch (Throwable error) {
                    failure.compareAndSet(null, error);
                }
            });
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            while (thread.isAlive() && failure.get() == null) {
                thread.join(100);
            }
        }
        if (failure.get() != null) {
            throw new IllegalStateException("a worker failed", failure.get());
        }
        System.out.println(moved.get());
    }

    static class Worker {
        final String source, sink;
        final AtomicInteger moved;
        final int count;
        final KafkaProducer<String, String> producer;
        final KafkaConsumer<String, String> consumer;
        int transactions = 0;

        Worker(String source, String sink, String group, String protocol, String id, AtomicInteger moved,
                int count) {
            this.source = source;
            this.sink = sink;
            this.moved = moved;
            this.count = count;
            producer = producer(id);
            Properties settings = new Properties();
            String strings = "org.apache.kafka.common.serialization.StringDeserializer";
            settings.put("bootstrap.servers", servers);
            settings.put("group.id", group);
            settings.put("group.protocol", protocol);
            settings.put("isolation.level", "read_committed");
            settings.put("auto.offset.reset", "earliest");
            settings.put("enable.auto.commit", "false");
            settings.put("max.poll.records", "7");
            settings.put("fetch.max.wait.ms", "50");
            settings.put("key.deserializer", strings);
            settings.put("value.deserializer", strings);
            consumer = new KafkaConsumer<>(settings);
            consumer.subscribe(List.of(source));
        }

        /** Until all is moved, or until so many transactions are begun; then the last is left open. */
        void live(int last) {
            try {
                while (moved.get() < count) {
                    ConsumerRecords<String, String> records = consumer.poll(POLL);
                    if (records.isEmpty()) {
                        continue;
                    }
                    transactions++;
                    boolean dies = last > 0 && transactions >= last;
                    if (!attempt(records, dies)) {
                        rewind();
                    } else if (dies) {
                        return;
                    }
                }
                producer.close();
            } finally {
                consumer.close();
            }
        }

        boolean attempt(ConsumerRecords<String, String> records, boolean dies) {
            producer.beginTransaction();
            try {
                Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
                for (ConsumerRecord<String, String> record : records) {
                    send(producer, sink, record.partition(), record.value());
                    ends.put(new TopicPartition(source, record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
                if (dies) {
                    producer.flush();
                    return true;
                }
                if (transactions % ABORT_EVERY == 0) {
                    producer.abortTransaction();
                    return false;
                }
                producer.commitTransaction();
                moved.addAndGet(records.count());
                return true;
            } catch (ProducerFencedException error) {
                throw error;
            } catch (KafkaException error) {
                producer.abortTransaction();
                return false;
            }
        }

        void rewind() {
            Set<TopicPartition> assigned = consumer.assignment();
            Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(assigned);
            for (TopicPartition place : assigned) {
                OffsetAndMetadata offset = committed.get(place);
                consumer.seek(place, offset == null ? 0 : offset.offset());
            }
        }
    }
}
