/* rdload: load on a Kafka-compatible broker through librdkafka, one JSON object on stdout when it is done.
 *
 *   rdload produce  -b HOST:PORT -t TOPIC -n RECORDS [-p PARTITIONS] [-s BYTES] [-r RECORDS_PER_SECOND] [-d RUN]
 *   rdload consume  -b HOST:PORT -t TOPIC -n RECORDS [-p PARTITIONS] [-k PASSES]
 *   rdload pingpong -b HOST:PORT -t TOPIC -n ROUNDS  [-s BYTES]
 *
 * -X name=value sets any property of librdkafka. -d is how many records in a row go to one partition.
 * SIGTERM ends a paced producer (-r) early; it still reports. The exit status is 1 when records are missing.
 * No consumer group is used, so the broker needs no group coordinator.
 */
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "latency.h"

enum { API_PRODUCE = 0, API_FETCH = 1, KNOWN_APIS = 128, PROPERTIES = 32 };
#define QUIET_NS (30 * 1000000000ull) /* a consumer that hears nothing for so long gives up */

typedef struct {
    const char *mode, *brokers, *topic;
    const char *property[PROPERTIES];
    int properties, partitions, passes, run_length;
    long records, rate;
    size_t size;
} plan;

typedef struct {
    long delivered, failed;
    uint64_t bytes, started_ns, ended_ns;
    const char *failure;
    histogram latency;
} outcome;

static atomic_long requests_sent[KNOWN_APIS];
static atomic_bool stopping;

static uint64_t now_ns(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000ull + (uint64_t)at.tv_nsec;
}

static void give_up(const char *doing, const char *why) {
    fprintf(stderr, "rdload: %s: %s\n", doing, why);
    exit(2);
}

static void ask_to_stop(int signal_number) {
    (void)signal_number;
    atomic_store(&stopping, true);
}

/* ---- client handles ------------------------------------------------------------------------------------ */

/* librdkafka has no counter of requests without its statistics document, which is large and slow to write
 * when there are many partitions. An interceptor sees each request once, on the thread that sends it. */
static rd_kafka_resp_err_t request_was_sent(rd_kafka_t *rk, int socket, const char *broker, int32_t id,
                                            int16_t api, int16_t version, int32_t correlation, size_t size,
                                            void *opaque) {
    (void)rk, (void)socket, (void)broker, (void)id, (void)version, (void)correlation, (void)size, (void)opaque;
    if (api >= 0 && api < KNOWN_APIS)
        atomic_fetch_add_explicit(&requests_sent[api], 1, memory_order_relaxed);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t count_requests(rd_kafka_t *rk, const rd_kafka_conf_t *conf, void *opaque, char *error,
                                          size_t error_size) {
    (void)conf, (void)error, (void)error_size;
    return rd_kafka_interceptor_add_on_request_sent(rk, "count", request_was_sent, opaque);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK)
        give_up(name, why);
}

static void set_all(rd_kafka_conf_t *conf, const plan *p) {
    set(conf, "bootstrap.servers", p->brokers);
    for (int i = 0; i < p->properties; i++) {
        char *pair = strdup(p->property[i]), *equals = strchr(pair, '=');
        if (!equals)
            give_up(pair, "expected name=value");
        *equals = '\0';
        set(conf, pair, equals + 1);
        free(pair);
    }
    rd_kafka_conf_interceptor_add_on_new(conf, "count", count_requests, NULL);
}

static rd_kafka_t *handle(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char why[256];
    rd_kafka_t *rk = rd_kafka_new(type, conf, why, sizeof why);
    if (!rk)
        give_up("new client", why);
    return rk;
}

static rd_kafka_topic_t *known_topic(rd_kafka_t *rk, const plan *p) {
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, p->topic, NULL);
    const struct rd_kafka_metadata *found;
    rd_kafka_resp_err_t error = rd_kafka_metadata(rk, 0, topic, &found, 20000);
    if (error)
        give_up("metadata", rd_kafka_err2str(error));
    int have = found->topic_cnt ? found->topics[0].partition_cnt : 0;
    rd_kafka_metadata_destroy(found);
    if (have < p->partitions)
        give_up(p->topic, "the topic has fewer partitions than asked for");
    return topic;
}

/* ---- produce ------------------------------------------------------------------------------------------- */

static void delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    (void)rk;
    outcome *o = opaque;
    if (message->err) {
        o->failed++;
        o->failure = rd_kafka_err2str(message->err);
        return;
    }
    o->delivered++;
    if (message->_private) {
        uint64_t now = now_ns(), due = (uint64_t)(uintptr_t)message->_private;
        histogram_add(&o->latency, now > due ? now - due : 0); /* sent a moment before it was due */
    }
}

typedef struct {
    rd_kafka_t *rk;
    atomic_bool sent_all;
} polling;

/* The only thread that runs delivery reports, so the outcome needs no lock. */
static void *poll_deliveries(void *argument) {
    polling *work = argument;
    while (!atomic_load(&work->sent_all) || rd_kafka_outq_len(work->rk) > 0)
        rd_kafka_poll(work->rk, 20);
    return NULL;
}

static void sleep_until(uint64_t due_ns) {
    struct timespec at = {(time_t)(due_ns / 1000000000ull), (long)(due_ns % 1000000000ull)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR && !atomic_load(&stopping))
        ;
}

static long send_records(const plan *p, rd_kafka_topic_t *topic, void *payload, uint64_t started_ns) {
    long sent = 0;
    while (sent < p->records && !atomic_load(&stopping)) {
        uint64_t stamp = 0;
        if (p->rate) {
            /* The latency of a late record counts from when it was due: a stall must not hide the records
             * that it kept from being sent. */
            stamp = started_ns + (uint64_t)sent * 1000000000ull / (uint64_t)p->rate;
            sleep_until(stamp);
        }
        int32_t partition = (int32_t)((sent / p->run_length) % p->partitions);
        /* Neither copy nor free: every record has the same payload, which outlives the client. */
        while (rd_kafka_produce(topic, partition, 0, payload, p->size, NULL, 0, (void *)(uintptr_t)stamp)) {
            if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
                give_up("produce", rd_kafka_err2str(rd_kafka_last_error()));
            usleep(500);
        }
        sent++;
    }
    return sent;
}

static char *noise(size_t size) {
    char *text = malloc(size + 1);
    uint32_t state = 2463534242u;
    for (size_t i = 0; i < size; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        text[i] = (char)('a' + state % 26);
    }
    return text;
}

static int produce(const plan *p, outcome *o) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "queue.buffering.max.messages", "500000");
    set(conf, "queue.buffering.max.kbytes", "524288");
    set_all(conf, p);
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_conf_set_opaque(conf, o);
    polling work = {.rk = handle(RD_KAFKA_PRODUCER, conf)};
    rd_kafka_topic_t *topic = known_topic(work.rk, p);
    char *payload = noise(p->size);
    pthread_t poller;
    o->started_ns = now_ns();
    pthread_create(&poller, NULL, poll_deliveries, &work);
    long sent = send_records(p, topic, payload, o->started_ns);
    atomic_store(&work.sent_all, true);
    pthread_join(poller, NULL);
    o->ended_ns = now_ns();
    o->bytes = (uint64_t)o->delivered * p->size;
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(work.rk);
    free(payload);
    return o->failed || o->delivered < sent;
}

/* ---- consume ------------------------------------------------------------------------------------------- */

static rd_kafka_t *consumer(const plan *p) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "queued.min.messages", "1000000");
    set_all(conf, p);
    return handle(RD_KAFKA_CONSUMER, conf);
}

static long take(rd_kafka_message_t **messages, ssize_t count, outcome *o) {
    long taken = 0;
    for (ssize_t i = 0; i < count; i++) {
        if (!messages[i]->err) {
            taken++;
            o->bytes += messages[i]->len;
        } else if (messages[i]->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            o->failure = rd_kafka_err2str(messages[i]->err);
        }
        rd_kafka_message_destroy(messages[i]);
    }
    return taken;
}

static long one_pass(const plan *p, rd_kafka_topic_t *topic, rd_kafka_queue_t *queue, outcome *o) {
    enum { AT_ONCE = 8192 };
    static rd_kafka_message_t *messages[AT_ONCE];
    for (int32_t i = 0; i < p->partitions; i++)
        if (rd_kafka_consume_start_queue(topic, i, RD_KAFKA_OFFSET_BEGINNING, queue))
            give_up("consume", rd_kafka_err2str(rd_kafka_last_error()));
    long got = 0;
    uint64_t heard_ns = now_ns();
    while (got < p->records && now_ns() - heard_ns < QUIET_NS && !atomic_load(&stopping)) {
        ssize_t count = rd_kafka_consume_batch_queue(queue, 200, messages, AT_ONCE);
        if (count <= 0)
            continue;
        heard_ns = now_ns();
        if (!o->started_ns) /* the first answer, not the connection, starts the clock */
            o->started_ns = heard_ns;
        got += take(messages, count, o);
        o->ended_ns = now_ns();
    }
    for (int32_t i = 0; i < p->partitions; i++)
        rd_kafka_consume_stop(topic, i);
    return got;
}

static int consume(const plan *p, outcome *o) {
    rd_kafka_t *rk = consumer(p);
    rd_kafka_topic_t *topic = known_topic(rk, p);
    int missing = 0;
    for (int pass = 0; pass < p->passes; pass++) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk); /* a new one: nothing of the last pass is left in it */
        long got = one_pass(p, topic, queue, o);
        rd_kafka_queue_destroy(queue);
        o->delivered += got;
        missing |= got < p->records;
    }
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
    return missing;
}

/* ---- ping-pong: one record at a time, from produce() to the consumer's hand ------------------------------ */

static int one_round(rd_kafka_t *rk, rd_kafka_topic_t *to, const plan *p, char *payload, rd_kafka_queue_t *from) {
    if (rd_kafka_produce(to, 0, 0, payload, p->size, NULL, 0, NULL))
        give_up("produce", rd_kafka_err2str(rd_kafka_last_error()));
    for (int tries = 0; tries < 10;) {
        rd_kafka_message_t *message = NULL;
        if (rd_kafka_consume_batch_queue(from, 1000, &message, 1) <= 0) {
            tries++;
            continue;
        }
        int arrived = !message->err;
        rd_kafka_message_destroy(message);
        if (arrived) {
            rd_kafka_poll(rk, 0);
            return 1;
        }
    }
    return 0;
}

static int pingpong(const plan *p, outcome *o) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set_all(conf, p);
    rd_kafka_t *sender = handle(RD_KAFKA_PRODUCER, conf);
    rd_kafka_topic_t *to = known_topic(sender, p);
    conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", p->brokers);
    set(conf, "socket.nagle.disable", "true");
    rd_kafka_t *receiver = handle(RD_KAFKA_CONSUMER, conf);
    rd_kafka_topic_t *from = known_topic(receiver, p);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(receiver);
    int64_t low, high;
    rd_kafka_resp_err_t error = rd_kafka_query_watermark_offsets(receiver, p->topic, 0, &low, &high, 20000);
    if (error)
        give_up("offsets", rd_kafka_err2str(error));
    rd_kafka_consume_start_queue(from, 0, high, queue);
    char *payload = noise(p->size);
    long unreported = p->records / 10;
    o->started_ns = now_ns();
    for (long i = 0; i < p->records + unreported; i++) {
        uint64_t began = now_ns();
        if (!one_round(sender, to, p, payload, queue))
            return 1;
        if (i >= unreported) {
            histogram_add(&o->latency, now_ns() - began);
            o->delivered++;
        }
    }
    o->ended_ns = now_ns();
    o->bytes = (uint64_t)o->delivered * p->size;
    rd_kafka_consume_stop(from, 0);
    rd_kafka_flush(sender, 5000);
    return 0;
}

/* ---- command line -------------------------------------------------------------------------------------- */

static plan parse(int count, char **words) {
    plan p = {.partitions = 1, .passes = 1, .run_length = 500, .size = 100};
    p.mode = count > 1 ? words[1] : "";
    int letter;
    optind = 2;
    while ((letter = getopt(count, words, "b:t:n:p:s:r:d:k:X:")) != -1)
        switch (letter) {
        case 'b': p.brokers = optarg; break;
        case 't': p.topic = optarg; break;
        case 'n': p.records = atol(optarg); break;
        case 'p': p.partitions = atoi(optarg); break;
        case 's': p.size = (size_t)atol(optarg); break;
        case 'r': p.rate = atol(optarg); break;
        case 'd': p.run_length = atoi(optarg); break;
        case 'k': p.passes = atoi(optarg); break;
        case 'X':
            if (p.properties == PROPERTIES)
                give_up("-X", "too many properties");
            p.property[p.properties++] = optarg;
            break;
        default: exit(2);
        }
    if (!p.brokers || !p.topic || p.records < 1 || p.partitions < 1 || p.run_length < 1)
        give_up("command line", "-b, -t and -n are needed, and counts are at least 1");
    return p;
}

static void report(const outcome *o) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("{\"records\": %ld, \"failed\": %ld, \"bytes\": %llu, \"seconds\": %.6f, \"client_cpu_s\": %.3f, "
           "\"produce_requests\": %ld, \"fetch_requests\": %ld, \"p50_us\": %.1f, \"p99_us\": %.1f, "
           "\"p999_us\": %.1f, \"max_us\": %.1f, \"client\": \"librdkafka %s\"}\n",
           o->delivered, o->failed, (unsigned long long)o->bytes, (double)(o->ended_ns - o->started_ns) / 1e9, cpu,
           atomic_load(&requests_sent[API_PRODUCE]), atomic_load(&requests_sent[API_FETCH]),
           histogram_quantile(&o->latency, 0.5) / 1e3, histogram_quantile(&o->latency, 0.99) / 1e3,
           histogram_quantile(&o->latency, 0.999) / 1e3, (double)o->latency.largest / 1e3, rd_kafka_version_str());
    if (o->failure)
        fprintf(stderr, "rdload: last error: %s\n", o->failure);
}

int main(int count, char **words) {
    static outcome o;
    plan p = parse(count, words);
    signal(SIGTERM, ask_to_stop);
    signal(SIGINT, ask_to_stop);
    int status;
    if (!strcmp(p.mode, "produce"))
        status = produce(&p, &o);
    else if (!strcmp(p.mode, "consume"))
        status = consume(&p, &o);
    else if (!strcmp(p.mode, "pingpong"))
        status = pingpong(&p, &o);
    else
        give_up(p.mode, "expected produce, consume or pingpong"), status = 2;
    report(&o);
    return status;
}
