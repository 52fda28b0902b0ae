/* model_table.c: which models can be named. */
#include "model_impl.h"

static const tac_model_family families[] = {
    {"mlp", "mlp[:H1,H2,...]",
     "linear layers with ReLU, one of 500 by default"},
    {"cnn", "cnn", "two 3x3 convolutions with pooling, two linear layers"},
    {"linear", "linear", "one linear layer: softmax regression"},
    {NULL, NULL, NULL},
};

/* In the order of the table above. */
static const tac__model_ops *const operations[] = {
    &tac__model_mlp,
    &tac__model_cnn,
    &tac__model_linear,
};

const tac_model_family *tac_model_families(void)
{
    return families;
}

const tac__model_ops *tac__model_ops_at(size_t index)
{
    return operations[index];
}
