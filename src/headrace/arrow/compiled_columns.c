/* The columns of records, as columns.py makes them, in a tenth of its time: the same class with the same bytes.
 *
 * A wheel has it if its builder asked for compiled modules (hatch_build.py); columns.py does the work where it
 * is missing. No number read from a batch is trusted: each is compared with the bytes that remain before it is
 * used. A batch that is refused leaves nothing behind.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MIN_RECORD_BYTES 7
#define MIN_HEADER_BYTES 2
#define LOG_APPEND_TIME_FLAG 0x08

static PyObject *InvalidRecord;

/* --- buffers that grow ---------------------------------------------------------------------------------- */

typedef struct {
    PyObject *bytes; /* a bytearray: Arrow takes it over without a copy */
    Py_ssize_t used;
} Growing;

static int
reserve(Growing *buffer, Py_ssize_t more)
{
    Py_ssize_t wanted = buffer->used + more;
    Py_ssize_t have = PyByteArray_GET_SIZE(buffer->bytes);
    if (wanted <= have)
        return 0;
    if (wanted < 2 * have)
        wanted = 2 * have;
    return PyByteArray_Resize(buffer->bytes, wanted);
}

#define AT(buffer) (PyByteArray_AS_STRING((buffer)->bytes) + (buffer)->used)

/* Callers have reserved the room. */
static inline void
put_i64(Growing *buffer, int64_t number)
{
    memcpy(AT(buffer), &number, 8);
    buffer->used += 8;
}

static inline void
put_i32(Growing *buffer, int32_t number)
{
    memcpy(AT(buffer), &number, 4);
    buffer->used += 4;
}

static int
begin(Growing *buffer)
{
    buffer->used = 0;
    PyObject *fresh = PyByteArray_FromStringAndSize(NULL, 0);
    if (fresh == NULL)
        return -1;
    Py_XSETREF(buffer->bytes, fresh);
    return 0;
}

/* Bytes of variable length that may be null. */
typedef struct {
    Growing ends, data, valid;
    Py_ssize_t rows, nulls;
} Binary;

static int
begin_binary(Binary *column)
{
    column->rows = column->nulls = 0;
    if (begin(&column->ends) || begin(&column->data) || begin(&column->valid) || reserve(&column->ends, 4))
        return -1;
    put_i32(&column->ends, 0);
    return 0;
}

static int
reserve_binary(Binary *column, Py_ssize_t rows, Py_ssize_t bytes)
{
    if (column->data.used + bytes > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "more than 2 GB of one column");
        return -1;
    }
    return reserve(&column->ends, 4 * rows) || reserve(&column->data, bytes) || reserve(&column->valid, rows / 8 + 1)
        ? -1 : 0;
}

static inline void
put_binary(Binary *column, const unsigned char *from, Py_ssize_t length)
{
    Py_ssize_t row = column->rows++;
    unsigned char *flags = (unsigned char *)PyByteArray_AS_STRING(column->valid.bytes) + (row >> 3);
    unsigned char flag = (unsigned char)(1u << (row & 7));
    if ((row & 7) == 0) {
        *flags = 0;
        column->valid.used = (row >> 3) + 1;
    }
    if (length >= 0) {
        *flags |= flag;
        memcpy(AT(&column->data), from, (size_t)length);
        column->data.used += length;
    }
    else {
        *flags &= (unsigned char)~flag;
        column->nulls++;
    }
    put_i32(&column->ends, (int32_t)column->data.used);
}

static void
cut_binary(Binary *column, const Binary *before)
{
    column->rows = before->rows;
    column->nulls = before->nulls;
    column->ends.used = before->ends.used;
    column->data.used = before->data.used;
    column->valid.used = before->valid.used;
}

/* --- the class ------------------------------------------------------------------------------------------ */

typedef struct {
    PyObject_HEAD
    int wants_keys, wants_values, wants_headers;
    int64_t first_offset, next_offset, first_ms, next_ms;
    Py_ssize_t rows;
    Growing offsets, timestamps, types, header_ends;
    Binary keys, values, header_names, header_values;
} Columns;

static int
begin_all(Columns *self)
{
    self->rows = 0;
    if (begin(&self->offsets) || begin(&self->timestamps) || begin(&self->types) || begin(&self->header_ends))
        return -1;
    if (begin_binary(&self->keys) || begin_binary(&self->values) || begin_binary(&self->header_names)
        || begin_binary(&self->header_values) || reserve(&self->header_ends, 4))
        return -1;
    put_i32(&self->header_ends, 0);
    return 0;
}

static int
columns_init(Columns *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"wanted", "bounds", NULL};
    long long first_offset, next_offset, first_ms, next_ms;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "(ppp)(LLLL)", names, &self->wants_keys, &self->wants_values,
                                     &self->wants_headers, &first_offset, &next_offset, &first_ms, &next_ms))
        return -1;
    self->first_offset = first_offset;
    self->next_offset = next_offset;
    self->first_ms = first_ms;
    self->next_ms = next_ms;
    return begin_all(self);
}

static void
columns_dealloc(Columns *self)
{
    Growing *plain[] = {&self->offsets, &self->timestamps, &self->types, &self->header_ends};
    Binary *binary[] = {&self->keys, &self->values, &self->header_names, &self->header_values};
    for (int i = 0; i < 4; i++) {
        Py_XDECREF(plain[i]->bytes);
        Py_XDECREF(binary[i]->ends.bytes);
        Py_XDECREF(binary[i]->data.bytes);
        Py_XDECREF(binary[i]->valid.bytes);
    }
    Py_TYPE(self)->tp_free((PyObject *)self);
}

/* --- reading -------------------------------------------------------------------------------------------- */

/* A signed varint of at most `most` bytes. 0 if it is none: `*reason` then says why. */
static int
long_varint(const unsigned char **at, const unsigned char *limit, int most, int64_t *number, const char **reason)
{
    uint64_t raw = 0;
    const unsigned char *from = *at;
    for (int i = 0; i < most; i++) {
        if (from >= limit) {
            *reason = "a record runs past the end of its batch";
            return 0;
        }
        uint64_t byte = *from++;
        if (i == 9 && (byte & 0x7F) > 1) {
            *reason = "a varlong does not fit 64 bits";
            return 0;
        }
        raw |= (byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            *at = from;
            *number = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
            if (most == 5 && (*number < INT32_MIN || *number > INT32_MAX)) {
                *reason = "a varint does not fit 32 bits";
                return 0;
            }
            return 1;
        }
    }
    *reason = "a varint is too long";
    return 0;
}

static inline int
varint(const unsigned char **at, const unsigned char *limit, int most, int64_t *number, const char **reason)
{
    if (*at < limit && **at < 0x80) {
        unsigned char byte = *(*at)++;
        *number = (byte >> 1) ^ -(byte & 1);
        return 1;
    }
    return long_varint(at, limit, most, number, reason);
}

/* A field with its length before it; -1 is null. `limit` is the end of the batch, `end` that of the record. */
static inline int
field(const unsigned char **at, const unsigned char *limit, const unsigned char *end, const unsigned char **from,
      int64_t *length, const char **reason)
{
    if (!varint(at, limit, 5, length, reason))
        return 0;
    *from = *at;
    if (*length < 0) {
        if (*length == -1)
            return 1;
        *reason = "a field of a negative length";
        return 0;
    }
    if (*length > end - *at) {
        *reason = "a field runs past the end of its record";
        return 0;
    }
    *at += *length;
    return 1;
}

static int
read_headers(Columns *self, const unsigned char **at, const unsigned char *limit, const unsigned char *end, int kept,
             const char **reason)
{
    int64_t count, length;
    const unsigned char *from;
    if (!varint(at, limit, 5, &count, reason))
        return 0;
    if (count < 0 || count * MIN_HEADER_BYTES > end - *at) {
        *reason = "more headers than a record can hold";
        return 0;
    }
    /* Names and values have room for all bytes of the batch, but not for each end of so many of them. */
    if (kept && (reserve_binary(&self->header_names, count, 0) || reserve_binary(&self->header_values, count, 0)))
        return 0;
    for (int64_t i = 0; i < count; i++) {
        if (!field(at, limit, end, &from, &length, reason))
            return 0;
        if (length < 0) {
            *reason = "a header without a key";
            return 0;
        }
        if (kept)
            put_binary(&self->header_names, from, length);
        if (!field(at, limit, end, &from, &length, reason))
            return 0;
        if (kept)
            put_binary(&self->header_values, from, length);
    }
    return 1;
}

typedef struct {
    int64_t base_offset, last_delta, base_timestamp, max_timestamp, count, attributes;
} Header;

/* 0 if the batch is refused; an exception is set if `*reason` is not. */
static int
read_records(Columns *self, const Header *header, const unsigned char *at, const unsigned char *limit,
             const char **reason)
{
    int64_t previous = -1, length, time_delta, delta, key_length, value_length;
    int is_append_time = (header->attributes & LOG_APPEND_TIME_FLAG) != 0;
    const unsigned char *key, *value;
    for (int64_t i = 0; i < header->count; i++) {
        if (!varint(&at, limit, 5, &length, reason))
            return 0;
        if (length < MIN_RECORD_BYTES - 1 || length > limit - at) {
            *reason = "a record runs past the end of its batch";
            return 0;
        }
        const unsigned char *end = at + length;
        at++; /* attributes */
        if (!varint(&at, limit, 10, &time_delta, reason) || !varint(&at, limit, 5, &delta, reason))
            return 0;
        if (delta <= previous || delta > header->last_delta) {
            *reason = "an offset does not follow the one before it";
            return 0;
        }
        previous = delta;
        if (!field(&at, limit, end, &key, &key_length, reason)
            || !field(&at, limit, end, &value, &value_length, reason))
            return 0;
        int64_t offset = (int64_t)((uint64_t)header->base_offset + (uint64_t)delta);
        int64_t time = is_append_time ? header->max_timestamp
                                      : (int64_t)((uint64_t)header->base_timestamp + (uint64_t)time_delta);
        int kept = offset >= self->first_offset && offset < self->next_offset && time >= self->first_ms
            && time < self->next_ms;
        if (!read_headers(self, &at, limit, end, kept && self->wants_headers, reason))
            return 0;
        if (at != end) {
            *reason = "a record does not end where its length says";
            return 0;
        }
        if (!kept)
            continue;
        put_i64(&self->offsets, offset);
        put_i64(&self->timestamps, time);
        put_i32(&self->types, is_append_time);
        if (self->wants_keys)
            put_binary(&self->keys, key, key_length);
        if (self->wants_values)
            put_binary(&self->values, value, value_length);
        if (self->wants_headers)
            put_i32(&self->header_ends, (int32_t)self->header_names.rows);
        self->rows++;
    }
    if (at != limit) {
        *reason = "bytes follow the last record of the batch";
        return 0;
    }
    return 1;
}

static int
reserve_all(Columns *self, Py_ssize_t rows, Py_ssize_t bytes)
{
    if (reserve(&self->offsets, 8 * rows) || reserve(&self->timestamps, 8 * rows) || reserve(&self->types, 4 * rows))
        return -1;
    if (self->wants_keys && reserve_binary(&self->keys, rows, bytes))
        return -1;
    if (self->wants_values && reserve_binary(&self->values, rows, bytes))
        return -1;
    if (!self->wants_headers)
        return 0;
    return reserve(&self->header_ends, 4 * rows) || reserve_binary(&self->header_names, 0, bytes)
        || reserve_binary(&self->header_values, 0, bytes) ? -1 : 0;
}

static int
parse_header(PyObject *given, Header *header)
{
    static const int places[] = {0, 6, 7, 8, 12, 5};
    int64_t *fields = (int64_t *)header;
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 13) {
        PyErr_SetString(PyExc_TypeError, "the header of a batch has 13 fields");
        return -1;
    }
    for (int i = 0; i < 6; i++) {
        fields[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(given, places[i]));
        if (fields[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

static int
is_unmade(Columns *self)
{
    if (self->offsets.bytes != NULL)
        return 0;
    PyErr_SetString(PyExc_TypeError, "RecordColumns.__init__ was not called");
    return 1;
}

static PyObject *
columns_add(Columns *self, PyObject *const *args, Py_ssize_t count)
{
    Header header;
    Py_buffer body;
    const char *reason = NULL;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "add(header, body)");
        return NULL;
    }
    if (is_unmade(self) || parse_header(args[0], &header) || PyObject_GetBuffer(args[1], &body, PyBUF_SIMPLE))
        return NULL;
    Columns before = *self;
    int done = 0;
    if (header.count < 0 || header.count > body.len / MIN_RECORD_BYTES)
        reason = "more records than its bytes can hold";
    else if (reserve_all(self, (Py_ssize_t)header.count, body.len) == 0)
        done = read_records(self, &header, body.buf, (unsigned char *)body.buf + body.len, &reason);
    PyBuffer_Release(&body);
    if (done)
        Py_RETURN_NONE;
    self->rows = before.rows;
    self->offsets.used = before.offsets.used;
    self->timestamps.used = before.timestamps.used;
    self->types.used = before.types.used;
    self->header_ends.used = before.header_ends.used;
    cut_binary(&self->keys, &before.keys);
    cut_binary(&self->values, &before.values);
    cut_binary(&self->header_names, &before.header_names);
    cut_binary(&self->header_values, &before.header_values);
    if (!PyErr_Occurred())
        PyErr_SetString(InvalidRecord, reason);
    return NULL;
}

/* --- giving them away ----------------------------------------------------------------------------------- */

static PyObject *
finished(Growing *buffer)
{
    if (PyByteArray_Resize(buffer->bytes, buffer->used))
        return NULL;
    return Py_NewRef(buffer->bytes);
}

static PyObject *
finished_binary(Binary *column, int is_wanted)
{
    if (!is_wanted)
        Py_RETURN_NONE;
    PyObject *ends = finished(&column->ends), *data = finished(&column->data);
    PyObject *valid = column->nulls ? finished(&column->valid) : Py_NewRef(Py_None);
    if (ends == NULL || data == NULL || valid == NULL) {
        Py_XDECREF(ends);
        Py_XDECREF(data);
        Py_XDECREF(valid);
        return NULL;
    }
    return Py_BuildValue("(NNN)", ends, data, valid);
}

static PyObject *
columns_take(Columns *self, PyObject *Py_UNUSED(ignored))
{
    if (is_unmade(self))
        return NULL;
    PyObject *parts[] = {
        PyLong_FromSsize_t(self->rows),
        finished(&self->offsets),
        finished(&self->timestamps),
        finished(&self->types),
        finished_binary(&self->keys, self->wants_keys),
        finished_binary(&self->values, self->wants_values),
        self->wants_headers ? finished(&self->header_ends) : Py_NewRef(Py_None),
        finished_binary(&self->header_names, self->wants_headers),
        finished_binary(&self->header_values, self->wants_headers),
    };
    PyObject *taken = PyTuple_New(9);
    int failed = taken == NULL;
    for (int i = 0; i < 9; i++) {
        failed |= parts[i] == NULL;
        if (taken != NULL)
            PyTuple_SET_ITEM(taken, i, parts[i]);
        else
            Py_XDECREF(parts[i]);
    }
    if (failed || begin_all(self)) {
        Py_XDECREF(taken);
        return NULL;
    }
    return taken;
}

static PyObject *
columns_size(Columns *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(self->keys.data.used + self->values.data.used + self->header_names.data.used
                              + self->header_values.data.used);
}

static PyObject *
columns_rows(Columns *self, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(self->rows);
}

static PyMethodDef columns_methods[] = {
    {"add", (PyCFunction)(void (*)(void))columns_add, METH_FASTCALL, "Take in the records of a batch."},
    {"take", (PyCFunction)columns_take, METH_NOARGS, "The columns; the next ones begin."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef columns_values[] = {
    {"rows", (getter)columns_rows, NULL, "How many records there are.", NULL},
    {"size", (getter)columns_size, NULL, "Bytes of keys, values and headers.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject ColumnsType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "headrace.arrow.compiled_columns.RecordColumns",
    .tp_basicsize = sizeof(Columns),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = (initproc)columns_init,
    .tp_dealloc = (destructor)columns_dealloc,
    .tp_methods = columns_methods,
    .tp_getset = columns_values,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "compiled_columns", "The columns of records, compiled.", -1, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit_compiled_columns(void)
{
    PyObject *errors = PyImport_ImportModule("headrace.core.errors");
    if (errors == NULL)
        return NULL;
    InvalidRecord = PyObject_GetAttrString(errors, "InvalidRecord");
    Py_DECREF(errors);
    if (InvalidRecord == NULL || PyType_Ready(&ColumnsType) < 0)
        return NULL;
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || PyModule_AddObjectRef(made, "RecordColumns", (PyObject *)&ColumnsType) < 0) {
        Py_XDECREF(made);
        return NULL;
    }
    return made;
}
