/* data_defects.h: headers of safetensors files that are wrong, each with the
 * message that it must get, and unusual ones that are right. */
#ifndef TAC_TESTS_DATA_DEFECTS_H
#define TAC_TESTS_DATA_DEFECTS_H

#include <stddef.h>

typedef struct defect {
    const char *what, *header;
    size_t data;
    const char *message;
} defect;

#define T(name, dtype, shape, offsets)                        \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape \
    "],\"data_offsets\":[" offsets "]}"
#define A   T("a", "F32", "2", "0,8")
#define TEN "[[[[[[[[[["
#define NET "]]]]]]]]]]"

static const defect defects[] = {
    /* The data. */
    {"overlap", "{" A "," T("b", "F32", "2", "4,12") "}", 12,
     "'a' and 'b' overlap"},
    {"same place", "{" A "," T("b", "F32", "2", "0,8") "}", 8, "overlap"},
    {"hole", "{" A "," T("b", "F32", "1", "12,16") "}", 16,
     "hole of 4 bytes before tensor 'b'"},
    {"hole at the start", "{" T("b", "F32", "1", "4,8") "}", 8, "hole of 4"},
    {"trailing bytes", "{" A "}", 11, "3 bytes follow"},
    {"only trailing bytes", "{}", 1, "1 bytes follow"},
    {"short file", "{" A "}", 7,
     "ends at byte 8 of the data, of which the "
     "file has 7"},
    {"reversed offsets", "{" T("a", "F32", "2", "8,0") "}", 8, "reversed"},
    {"offsets for another shape", "{" T("a", "F32", "3", "0,8") "}", 8,
     "8 bytes by its offsets and 12 by its shape"},
    {"shape of nothing with data", "{" T("a", "F32", "0", "0,8") "}", 8,
     "and 0 by its shape"},
    /* Shapes and numbers. */
    {"product overflows", "{" T("a", "F32", "4294967296,4294967296", "0,8") "}",
     8, "product that overflows"},
    {"bytes overflow", "{" T("a", "F64", "4611686018427387904", "0,0") "}", 0,
     "product that overflows"},
    {"overflow behind a zero",
     "{" T("a", "F32", "0,9223372036854775807,9223372036854775807", "0,0") "}",
     0, "product that overflows"},
    {"large but whole",
     "{" T("a", "F32", "1099511627776", "0,4398046511104") "}", 8,
     "ends at byte 4398046511104"},
    {"negative size", "{" T("a", "F32", "-2", "0,8") "}", 8,
     "shape of tensor 'a' is -2, which is negative"},
    {"fractional size", "{" T("a", "F32", "2.5", "0,8") "}", 8,
     "2.5, which is no whole number"},
    {"exponent", "{" T("a", "F32", "2e0", "0,8") "}", 8, "no whole number"},
    {"huge size", "{" T("a", "F32", "99999999999999999999", "0,8") "}", 8,
     "too big integer"},
    {"huge real", "{" T("a", "F32", "1e999", "0,8") "}", 8, "overflow"},
    {"size that is text", "{" T("a", "F32", "\"2\"", "0,8") "}", 8,
     "shape of tensor 'a' is no number"},
    {"negative offset", "{" T("a", "F32", "2", "-8,0") "}", 8,
     "offset of tensor 'a' is -8"},
    {"fractional offset", "{" T("a", "F32", "2", "0,8.0") "}", 8,
     "no whole number"},
    {"huge offset", "{" T("a", "F32", "2", "0,18446744073709551624") "}", 8,
     "too big integer"},
    {"one offset", "{" T("a", "F32", "2", "0") "}", 8, "of two numbers"},
    {"three offsets", "{" T("a", "F32", "2", "0,8,16") "}", 8,
     "of two numbers"},
    {"nine dimensions", "{" T("a", "U8", "1,1,1,1,1,1,1,1,1", "0,1") "}", 1,
     "9 dimensions"},
    /* Types. */
    {"unknown type", "{" T("a", "F8_E4M3", "8", "0,8") "}", 8,
     "of type F8_E4M3, which is not supported"},
    {"type in small letters", "{" T("a", "f32", "2", "0,8") "}", 8,
     "of type f32"},
    {"type that is a number",
     "{\"a\":{\"dtype\":1,\"shape\":[],\"data_offsets\":[0,4]}}", 4,
     "no \"dtype\""},
    /* Descriptions. */
    {"no type", "{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
     "'a' has no \"dtype\""},
    {"no shape", "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8,
     "'a' has no \"shape\""},
    {"no offsets", "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8,
     "'a' has no \"data_offsets\""},
    {"shape that is no list",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8,
     "no \"shape\""},
    {"description that is a list", "{\"a\":[1]}", 8, "is no object"},
    {"description that is a number", "{\"a\":1}", 8, "is no object"},
    {"key twice in a description",
     "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],"
     "\"data_offsets\":[0,8]}}",
     8, "duplicate object key"},
    /* Names. */
    {"tensor twice", "{" A "," T("a", "F32", "1", "8,12") "}", 12,
     "tensor 'a' twice"},
    {"tensor twice by escapes", "{" A "," T("\\u0061", "F32", "1", "8,12") "}",
     12, "tensor 'a' twice"},
    {"name with a NUL", "{" T("a\\u0000b", "F32", "2", "0,8") "}", 8,
     "a name in the header is no text"},
    {"name with a raw newline", "{" T("a\nb", "F32", "2", "0,8") "}", 8,
     "is no text"},
    {"name that is no UTF-8", "{" T("a\xff", "F32", "2", "0,8") "}", 8,
     "is no text"},
    {"name of overlong UTF-8", "{" T("\xc0\xaf", "F32", "2", "0,8") "}", 8,
     "is no text"},
    {"lone surrogate", "{" T("\\ud800", "F32", "2", "0,8") "}", 8,
     "is no text"},
    {"unknown escape", "{" T("\\x", "F32", "2", "0,8") "}", 8, "is no text"},
    /* Metadata. */
    {"metadata that are a list", "{\"__metadata__\":[]}", 0,
     "metadata are no valid JSON"},
    {"metadata value that is a number", "{\"__metadata__\":{\"a\":1}}", 0,
     "value of the metadata in the header is no text"},
    {"metadata value that is an object", "{\"__metadata__\":{\"a\":{}}}", 0,
     "another type"},
    {"metadata key twice", "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0,
     "the key 'a' twice"},
    {"metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0,
     "\"__metadata__\" twice"},
    /* JSON. */
    {"nothing", "", 0, "does not begin with '{'"},
    {"a space first", " {}", 0, "does not begin with '{'"},
    {"a list", "[]", 0, "does not begin with '{'"},
    {"not closed", "{" A, 8, "no valid JSON"},
    {"no comma", "{" A A "}", 8, "a comma is missing"},
    {"comma too many", "{" A ",}", 8, "a key is missing"},
    {"no colon", "{\"a\" 1}", 8, "a colon is missing"},
    {"no value", "{\"a\":}", 8, "a value is missing"},
    {"text without end", "{\"a", 8, "does not end"},
    {"text that ends in an escape", "{\"a\\", 8, "does not end"},
    {"more after the end", "{}{}", 0, "follows the last bracket"},
    {"a NUL after the end", "{}\0", 0, NULL},
    {"deep nesting", "{\"a\":" TEN TEN NET NET "}", 0, "nest too deeply"},
    {"deep and open", "{\"a\":" TEN TEN TEN, 0, "nest too deeply"},
    {"brackets that don't match", "{\"a\":{]}", 0, "no valid JSON"},
    {"garbage", "{\x01\x02\x03}", 0, "a key is missing"},
};

/* What is unusual but right. */
static const defect oddities[] = {
    {"unknown keys",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],"
     "\"more\":[{}]}}",
     8, NULL},
    {"empty tensors anywhere",
     "{" T("z", "F32", "0", "0,0") "," A "," T("y", "U8", "3,0", "8,8") "}", 8,
     NULL},
    {"scalar", "{" T("s", "I64", "", "0,8") "}", 8, NULL},
    {"order of descriptions", "{" T("b", "U8", "1", "8,9") "," A "}", 9, NULL},
    {"space",
     "{ \"a\" :\t{ \"dtype\" : \"F32\" , \"shape\" : [ 2 ] ,\n"
     "\"data_offsets\" : [ 0 , 8 ] } } \r\n ",
     8, NULL},
    {"names",
     "{" T("\\\"\\\\\\u00e9\\ud83d\\ude00 \xc3\xa9", "F32", "2", "0,8") "}", 8,
     NULL},
    {"an empty name", "{" T("", "F32", "2", "0,8") "}", 8, NULL},
    {"empty metadata", "{\"__metadata__\":{}," A "}", 8, NULL},
    {"negative zero", "{" T("a", "F32", "2", "-0,8") "}", 8, NULL},
};

#endif
