/* image_files.c: folders of four IDX files named as MNIST's.
 *
 * fashion-mnist is such a folder with known sizes and constants; idx:DIR is
 * any other. Memory: one byte a pixel. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "families.h"
#include "image_set.h"
#include "tacit/idx.h"

/* One images file and its labels file, read. */
typedef struct pair {
    tac_idx images, labels;
    size_t classes; /* largest label + 1 */
} pair;

/* What all of a folder's files have in common. */
typedef struct folder {
    tac_context *ctx;
    const char *name; /* static, of the dataset */
    const char *dir;
    const char *remedy;
} folder;

static tac_status check_folder(const folder *f)
{
    struct stat st;
    if (stat(f->dir, &st) != 0)
        return tac_fail(f->ctx, TAC_ERR_IO, "no data folder %s: %s", f->dir,
                        f->remedy);
    if (!S_ISDIR(st.st_mode))
        return tac_fail(f->ctx, TAC_ERR_IO, "%s is no folder: %s", f->dir,
                        f->remedy);
    return TAC_OK;
}

/* dir/base.gz or dir/base, whichever exists, the first one preferred. */
static tac_status find_file(const folder *f, const char *base, char **out)
{
    const size_t bytes = strlen(f->dir) + strlen(base) + 5;
    char *path = malloc(bytes);
    if (!path) return tac_fail(f->ctx, TAC_ERR_NOMEM, "no memory for a path");
    static const char *const suffixes[] = {".gz", ""};
    for (int i = 0; i < 2; ++i) {
        snprintf(path, bytes, "%s/%s%s", f->dir, base, suffixes[i]);
        if (access(path, F_OK) == 0) {
            *out = path;
            return TAC_OK;
        }
    }
    free(path);
    return tac_fail(f->ctx, TAC_ERR_IO,
                    "data folder %s has neither %s.gz nor %s: %s", f->dir, base,
                    base, f->remedy);
}

static tac_status read_file(const folder *f, const char *base, int ndim,
                            tac_idx *out)
{
    char *path = NULL;
    TAC_TRY(find_file(f, base, &path));
    const tac_status status = tac_idx_read(f->ctx, path, TAC_IDX_U8, ndim, out);
    free(path);
    return status;
}

static tac_status check_images(const folder *f, const char *base,
                               const tac_idx *images)
{
    if ((images->ndim == 3 || images->ndim == 4) &&
        (images->shape[0] == 0 || images->count > 0))
        return TAC_OK;
    return tac_fail(f->ctx, TAC_ERR_DATA,
                    "%s/%s: images must have 3 or 4 dimensions (N,H,W[,C]) of "
                    "at least 1; found %d dimensions",
                    f->dir, base, images->ndim);
}

static tac_status check_pair(const folder *f, const char *part, pair *p)
{
    const size_t n = p->labels.count;
    if (p->images.shape[0] != n)
        return tac_fail(f->ctx, TAC_ERR_DATA,
                        "%s: %s has %zu images but %zu labels; the two files "
                        "don't belong together",
                        f->dir, part, p->images.shape[0], n);
    const uint8_t *label = p->labels.data;
    unsigned largest = 0;
    for (size_t i = 0; i < n; ++i)
        if (label[i] > largest) largest = label[i];
    p->classes = n ? largest + 1u : 0;
    return TAC_OK;
}

static void pair_free(pair *p)
{
    tac_idx_free(&p->images);
    tac_idx_free(&p->labels);
}

/* Reads <part>-images-idx3-ubyte and <part>-labels-idx1-ubyte. */
static tac_status pair_read(const folder *f, const char *part, pair *out)
{
    char images[40], labels[40];
    snprintf(images, sizeof(images), "%s-images-idx3-ubyte", part);
    snprintf(labels, sizeof(labels), "%s-labels-idx1-ubyte", part);
    pair p = {0};
    tac_status status = read_file(f, images, 0, &p.images);
    if (status >= 0) status = check_images(f, images, &p.images);
    if (status >= 0) status = read_file(f, labels, 1, &p.labels);
    if (status >= 0) status = check_pair(f, part, &p);
    if (status < 0)
        pair_free(&p);
    else
        *out = p;
    return status;
}

/* Both parts must be of one kind. */
static tac_status check_parts(const folder *f, const pair *train,
                              const pair *test)
{
    const tac_idx *a = &train->images, *b = &test->images;
    int same = a->ndim == b->ndim;
    for (int d = 1; same && d < a->ndim; ++d) same = a->shape[d] == b->shape[d];
    if (!same)
        return tac_fail(f->ctx, TAC_ERR_DATA,
                        "%s: training images are %zux%zu, test images %zux%zu",
                        f->dir, a->shape[1], a->shape[2], b->shape[1],
                        b->shape[2]);
    if (test->classes > train->classes)
        return tac_fail(f->ctx, TAC_ERR_DATA,
                        "%s: test label %zu is over the largest training "
                        "label; found %zu classes in training",
                        f->dir, test->classes - 1, train->classes);
    return TAC_OK;
}

/* Takes the pair's arrays over on success. */
static tac_status pair_dataset(const folder *f, pair *p, size_t classes,
                               double mean, double std, tac_dataset **out)
{
    const tac_idx *im = &p->images;
    const tac_dataset_info info = {im->shape[0], im->shape[1], im->shape[2],
                                   im->ndim == 4 ? im->shape[3] : 1, classes};
    const tac__image_set set = {im->data, p->labels.data, mean, std};
    TAC_TRY(tac__image_set_create(f->ctx, f->name, &set, &info, out));
    p->images.data = p->labels.data = NULL;
    return TAC_OK;
}

/* Makes the three parts of two pairs; classes 0: as the training labels say;
 * std 0: mean and std of the training images. */
static tac_status folder_data(const folder *f, pair *train, pair *test,
                              size_t classes, double mean, double std,
                              tac_data *out)
{
    TAC_TRY(check_parts(f, train, test));
    if (!classes) classes = train->classes;
    if (std == 0)
        tac__pixel_statistics(train->images.data, train->images.count, &mean,
                              &std);
    tac_dataset *all = NULL, *held = NULL;
    TAC_TRY(pair_dataset(f, train, classes, mean, std, &all));
    const tac_status status = pair_dataset(f, test, classes, mean, std, &held);
    if (status < 0) {
        tac_dataset_destroy(all);
        return status;
    }
    return tac__data_assemble(f->ctx, all, held, out);
}

static tac_status read_parts(const folder *f, pair *train, pair *test)
{
    TAC_TRY(check_folder(f));
    TAC_TRY(pair_read(f, "train", train));
    const tac_status status = pair_read(f, "t10k", test);
    if (status < 0) pair_free(train);
    return status;
}

/* What is known of Fashion-MNIST must be found in its files. */
static tac_status check_fashion_mnist(const folder *f, const pair *train,
                                      const pair *test)
{
    const tac_idx *a = &train->images;
    if (a->ndim == 3 && a->shape[0] == 60000 && a->shape[1] == 28 &&
        a->shape[2] == 28 && test->images.shape[0] == 10000 &&
        train->classes == 10)
        return TAC_OK;
    return tac_fail(f->ctx, TAC_ERR_DATA,
                    "%s is not Fashion-MNIST: expected 60000 + 10000 images of "
                    "28x28 in 10 classes, found %zu + %zu of %zux%zu in %zu; "
                    "use idx:%s for other data",
                    f->dir, a->shape[0], test->images.shape[0], a->shape[1],
                    a->shape[2], train->classes, f->dir);
}

tac_status tac__data_open_fashion_mnist(tac_context *ctx, const char *arg,
                                        const tac_data_config *config,
                                        tac_data *out)
{
    if (arg)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "data fashion-mnist:%s: fashion-mnist takes no "
                        "argument; use idx:DIR for another folder",
                        arg);
    const folder f = {
        ctx, "fashion-mnist", config->dir ? config->dir : TAC_FASHION_MNIST_DIR,
        "apt install dataset-fashion-mnist, or give another folder as idx:DIR, "
        "or use --data synth"};
    pair train, test;
    TAC_TRY(read_parts(&f, &train, &test));
    tac_status status = check_fashion_mnist(&f, &train, &test);
    if (status >= 0)
        status = folder_data(&f, &train, &test, 10, TAC_FASHION_MNIST_MEAN,
                             TAC_FASHION_MNIST_STD, out);
    pair_free(&train);
    pair_free(&test);
    return status;
}

tac_status tac__data_open_idx(tac_context *ctx, const char *arg,
                              const tac_data_config *config, tac_data *out)
{
    (void)config;
    if (!arg || !*arg)
        return tac_fail(ctx, TAC_ERR_CONFIG,
                        "data idx needs a folder: idx:DIR");
    const folder f = {ctx, "idx", arg,
                      "give a folder with the four IDX files, or use --data "
                      "synth"};
    pair train, test;
    TAC_TRY(read_parts(&f, &train, &test));
    const tac_status status = folder_data(&f, &train, &test, 0, 0, 0, out);
    pair_free(&train);
    pair_free(&test);
    return status;
}
