/* A histogram of durations: 64 steps to each power of two, so any answer is within 1.6 %. */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include <stdint.h>

#define STEPS_BITS 6
#define STEPS (1u << STEPS_BITS)
#define BUCKETS (64u * STEPS)

typedef struct {
    uint64_t count;
    uint64_t largest;
    uint64_t bucket[BUCKETS];
} histogram;

/* Below STEPS the bucket is the value itself; above it is (power of two, next STEPS_BITS bits). */
static inline unsigned bucket_of(uint64_t value) {
    if (value < STEPS)
        return (unsigned)value;
    unsigned power = 63u - (unsigned)__builtin_clzll(value);
    unsigned step = (unsigned)(value >> (power - STEPS_BITS)) & (STEPS - 1);
    return (power - STEPS_BITS + 1) * STEPS + step;
}

/* The middle of a bucket: the inverse of bucket_of, up to the width of the bucket. */
static inline double value_of(unsigned bucket) {
    if (bucket < STEPS)
        return bucket;
    unsigned power = bucket / STEPS - 1;
    return ((double)(STEPS + bucket % STEPS) + 0.5) * (double)(1ull << power);
}

static inline void histogram_add(histogram *h, uint64_t value) {
    h->bucket[bucket_of(value)]++;
    h->count++;
    if (value > h->largest)
        h->largest = value;
}

static inline double histogram_quantile(const histogram *h, double quantile) {
    uint64_t wanted = (uint64_t)(quantile * (double)h->count), seen = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        seen += h->bucket[i];
        if (seen > wanted)
            return value_of(i);
    }
    return (double)h->largest;
}

#endif
