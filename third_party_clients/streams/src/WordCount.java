import java.util.Arrays;
import java.util.Properties;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts words by Kafka Streams, exactly once, and tells every step: each word comes out with 1, 2, 3 and so on.
 *
 * The counts are kept in memory and in a compacted topic alone, so that each start must read them back.
 * Ends when stdin ends. usage: WordCount BOOTSTRAP APPLICATION FROM TO STATE-DIRECTORY
 */
public final class WordCount {
    public static void main(String[] arguments) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[2], Consumed.with(Serdes.ByteArray(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(arguments[3], Produced.with(Serdes.String(), Serdes.String()));

        KafkaStreams streams = new KafkaStreams(builder.build(), configuration(arguments));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        while (System.in.read() != -1) {
            // Nothing is said; only the end counts.
        }
        streams.close();
    }

    private static Properties configuration(String[] arguments) {
        Properties config = new Properties();
        config.put("bootstrap.servers", arguments[0]);
        config.put("application.id", arguments[1]);
        config.put("state.dir", arguments[4]);
        config.put("processing.guarantee", "exactly_once_v2");
        config.put("commit.interval.ms", 100);
        config.put("statestore.cache.max.bytes", 0);
        config.put("num.stream.threads", 1);
        config.put("auto.offset.reset", "earliest");
        // Short, because the test kills: the next start waits for what the last one left open.
        config.put("producer.transaction.timeout.ms", 4000);
        config.put("producer.delivery.timeout.ms", 60000);
        config.put("consumer.session.timeout.ms", 6000);
        config.put("consumer.heartbeat.interval.ms", 500);
        config.put("main.consumer.group.instance.id", "one");
        return config;
    }
}
