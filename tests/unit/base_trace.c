/* base_trace.c: the ring of spans and its JSON. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tac_json_check.h"
#include "tacit/trace.h"

static tac_context *make(size_t events)
{
    tac_context_config config = TAC_CONTEXT_CONFIG_INIT;
    tac_context *ctx = NULL;
    config.rank = 2;
    config.world = 3;
    config.trace_events = events;
    cr_assert_eq(tac_context_create(&config, &ctx), TAC_OK);
    return ctx;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    while ((text = strstr(text, what))) {
        ++n;
        text += strlen(what);
    }
    return n;
}

Test(trace, off)
{
    char *text = NULL;
    tac_span span;
    tac_context *ctx = make(0);
    cr_assert_not(tac_trace_enabled(ctx));
    cr_assert_not(tac_trace_enabled(NULL));
    tac_trace_span(ctx, TAC_LANE_COMM, "x", 1, 2, 3);
    tac_trace_span(NULL, TAC_LANE_COMM, "x", 1, 2, 3);
    cr_assert_eq(tac_trace_read(ctx, &span, 1), 0);
    cr_assert_eq(tac_trace_lost(ctx), 0);
    cr_assert_eq(tac_trace_events_json(ctx, 0, &text), TAC_OK);
    cr_assert_eq(count(text, "\"ph\":\"X\""), 0);
    free(text);
    tac_context_destroy(ctx);
}

Test(trace, oldest_are_overwritten)
{
    tac_span spans[5];
    tac_context *ctx = make(5);
    cr_assert(tac_trace_enabled(ctx));
    cr_assert_eq(tac_trace_read(ctx, NULL, 0), 0);
    for (uint64_t i = 0; i < 3; ++i)
        tac_trace_span(ctx, TAC_LANE_STEP, "s", i, i + 1, (int64_t)i);
    cr_assert_eq(tac_trace_read(ctx, NULL, 0), 3);
    for (uint64_t i = 3; i < 12; ++i)
        tac_trace_span(ctx, TAC_LANE_COMM, "c", i, i + 1, (int64_t)i);
    cr_assert_eq(tac_trace_read(ctx, NULL, 0), 5);
    cr_assert_eq(tac_trace_lost(ctx), 7);
    memset(spans, 0xff, sizeof spans);
    cr_assert_eq(tac_trace_read(ctx, spans, 5), 5);
    for (int i = 0; i < 5; ++i) {
        cr_assert_eq(spans[i].arg, 7 + i);
        cr_assert_eq(spans[i].begin_ns, (uint64_t)(7 + i));
        cr_assert_eq(spans[i].lane, TAC_LANE_COMM);
    }
    cr_assert_eq(tac_trace_read(ctx, spans, 2), 2);
    cr_assert_eq(spans[1].arg, 8);
    tac_context_destroy(ctx);
}

static void *record(void *arg)
{
    for (int i = 0; i < 1000; ++i)
        tac_trace_span(arg, TAC_LANE_COMPUTE, "t", 5, 7, i);
    return NULL;
}

Test(trace, any_thread)
{
    pthread_t threads[3];
    tac_context *ctx = make(4000);
    tac_span *spans = malloc(4000 * sizeof *spans);
    int64_t sum = 0;
    for (int i = 0; i < 3; ++i)
        cr_assert_eq(pthread_create(&threads[i], NULL, record, ctx), 0);
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    cr_assert_eq(tac_trace_read(ctx, spans, 4000), 3000);
    for (int i = 0; i < 3000; ++i) sum += spans[i].arg;
    cr_assert_eq(sum, 3 * 999 * 1000 / 2);
    free(spans);
    tac_context_destroy(ctx);
}

static void expect_events(const char *text)
{
    cr_assert_eq(count(text, "\"name\":\"process_name\",\"ph\":\"M\""), 1);
    cr_assert_eq(count(text, "\"name\":\"thread_name\",\"ph\":\"M\""),
                 TAC_LANE_COUNT);
    cr_assert_eq(count(text, "_sort_index\",\"ph\":\"M\""), 1 + TAC_LANE_COUNT);
    cr_assert_eq(count(text, "\"pid\":2"), 2 * (1 + TAC_LANE_COUNT) + 2);
    /* Whichever was recorded first, the one that began first comes first. */
    cr_assert_lt(strstr(text, "ends before"), strstr(text, "reduce"));
    cr_assert_eq(count(text, "\"ph\":\"X\""), 2);
    cr_assert_not_null(
        strstr(text, "{\"name\":\"reduce \\\"0\\\"\",\"ph\":\"X\",\"pid\":2,"
                     "\"tid\":1,\"ts\":1234567890.001,\"dur\":2.5,"
                     "\"args\":{\"arg\":4096}}"));
    cr_assert_not_null(strstr(text, "\"ts\":1,\"dur\":0}"));
}

static void record_two(tac_context *ctx)
{
    const uint64_t begin = UINT64_C(1234567890001);
    tac_trace_span(ctx, TAC_LANE_COMM, "reduce \"0\"", begin, begin + 2500,
                   4096);
    tac_trace_span(ctx, TAC_LANE_COMPUTE, "ends before", 1000, 999, -1);
}

Test(trace, times_are_shifted)
{
    char *text = NULL;
    tac_context *ctx = make(8);
    record_two(ctx);
    cr_assert_eq(tac_trace_events_json(ctx, -500, &text), TAC_OK);
    cr_assert_not_null(strstr(text, "\"ts\":0.5,\"dur\":0}"));
    cr_assert_not_null(strstr(text, "\"ts\":1234567889.501,\"dur\":2.5,"));
    free(text);
    tac_context_destroy(ctx);
}

/* The bare lists of two ranks, joined by a comma, are one list. */
Test(trace, events_can_be_merged)
{
    char *text = NULL;
    tac_context *ctx = make(8);
    record_two(ctx);
    cr_assert_eq(tac_trace_events_json(ctx, 0, &text), TAC_OK);
    expect_events(text);
    char *merged = malloc(2 * strlen(text) + 4);
    sprintf(merged, "[%s,%s]", text, text);
    cr_assert(tac_json_is_valid(merged), "%s", merged);
    free(merged);
    free(text);
    tac_context_destroy(ctx);
}

Test(trace, file_has_the_shape)
{
    char path[] = "/tmp/tacit-trace-XXXXXX", text[8192] = "";
    tac_context *ctx = make(8);
    record_two(ctx);
    close(mkstemp(path));
    cr_assert_eq(tac_trace_write(ctx, path), TAC_OK);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f);
    cr_assert(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    unlink(path);
    cr_assert(tac_json_is_valid(text), "%s", text);
    cr_assert_eq(strncmp(text, "{\"traceEvents\":[{", 17), 0);
    expect_events(text);
    cr_assert_not_null(strstr(text, "\"overwritten_spans\":0"));
    tac_context_destroy(ctx);
}

Test(trace, unwritable_place)
{
    char message[512];
    tac_context *ctx = make(8);
    cr_assert_eq(tac_trace_write(ctx, "/no/such/folder/trace.json"),
                 TAC_ERR_IO);
    cr_assert_eq(tac_context_error(ctx, message, sizeof message), TAC_ERR_IO);
    cr_assert_not_null(strstr(message, "/no/such/folder/trace.json"));
    cr_assert_not_null(strstr(message, "No such file"));
    tac_context_destroy(ctx);
}
