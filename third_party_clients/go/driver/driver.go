// Package driver lets a Go client be driven from outside: one JSON object per line in, one per line out.
//
// A request names an operation in "op". An answer has "ok"; a failure has Kafka's error "code" as well,
// or -1 where the client gave an error of its own. Keys, values and header values are base64.
package driver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sync"
)

// Header is a pair of name and value; a nil value is Kafka's null.
type Header struct {
	Key   string
	Value []byte
}

func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.Key, h.Value}) }

func (h *Header) UnmarshalJSON(data []byte) error {
	var pair [2]json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if err := json.Unmarshal(pair[0], &h.Key); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &h.Value)
}

type Record struct {
	Offset    int64    `json:"offset"`
	Timestamp *int64   `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers"`
}

type Request struct {
	Op          string            `json:"op"`
	Topic       string            `json:"topic"`
	Partition   int32             `json:"partition"`
	Partitions  int32             `json:"partitions"`
	Configs     map[string]string `json:"configs"`
	Count       int               `json:"count"`
	Records     []Record          `json:"records"`
	Compression string            `json:"compression"`
	Acks        string            `json:"acks"`
	Idempotent  bool              `json:"idempotent"`
	At          string            `json:"at"`
	Value       json.RawMessage   `json:"value"`
	TimeoutMs   int               `json:"timeout_ms"`
	Name        string            `json:"name"`
	How         string            `json:"how"`
	Offset      int64             `json:"offset"`
	Membership
	Transaction
}

// Membership is what requests about a member of a group say.
type Membership struct {
	Member        string          `json:"member"`
	Group         string          `json:"group"`
	Instance      *string         `json:"instance"`
	Cooperative   bool            `json:"cooperative"`
	CommittedOnly bool            `json:"committed_only"`
	SessionMs     int             `json:"session_ms"`
	HeartbeatMs   int             `json:"heartbeat_ms"`
	Offsets       map[int32]int64 `json:"offsets"`
	Metadata      string          `json:"metadata"`
	Parts         []int32         `json:"parts"`
}

// Transaction is what requests about a transactional producer say.
type Transaction struct {
	Producer        string   `json:"producer"`
	TransactionalID string   `json:"transactional_id"`
	Values          [][]byte `json:"values"`
	To              string   `json:"to"`
}

// Read is a record as a member of a group got it.
type Read struct {
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Value     []byte `json:"value"`
}

// Committed is a group's place in a partition.
type Committed struct {
	Offset   int64  `json:"offset"`
	Metadata string `json:"metadata"`
}

// Assignment is what a member holds, and what it had to give back since it was last asked.
// The library tells it on threads of its own.
type Assignment struct {
	lock    sync.Mutex
	held    map[int32]bool
	revoked [][]int32
}

func (a *Assignment) Add(partitions []int32) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.held == nil {
		a.held = map[int32]bool{}
	}
	for _, one := range partitions {
		a.held[one] = true
	}
}

func (a *Assignment) Revoke(partitions []int32) {
	a.lock.Lock()
	defer a.lock.Unlock()
	for _, one := range partitions {
		delete(a.held, one)
	}
	if len(partitions) > 0 {
		a.revoked = append(a.revoked, partitions)
	}
}

// Answer tells it beside the records that a poll found.
func (a *Assignment) Answer(records []Read) Answer {
	a.lock.Lock()
	defer a.lock.Unlock()
	held := []int32{}
	for one := range a.held {
		held = append(held, one)
	}
	revoked := append([][]int32{}, a.revoked...)
	a.revoked = nil
	return Answer{"records": records, "assignment": held, "revoked": revoked}
}

// Number is the request's "value" where an offset or a timestamp is meant.
func (r Request) Number() (n int64) {
	_ = json.Unmarshal(r.Value, &n)
	return n
}

// Text is the request's "value" where a configuration value is meant.
func (r Request) Text() (s string) {
	_ = json.Unmarshal(r.Value, &s)
	return s
}

type Partition struct {
	Partition int32   `json:"partition"`
	Leader    int32   `json:"leader"`
	Replicas  []int32 `json:"replicas"`
	Isr       []int32 `json:"isr"`
}

// Answer is a bag of result fields, as the operations differ.
type Answer map[string]any

// Operations maps names to what a client can do.
type Operations map[string]func(Request) (Answer, error)

// Serve answers requests until stdin ends. codeOf finds Kafka's code in an error of the client.
func Serve(operations Operations, codeOf func(error) int) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 256<<20)
	answers := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(answers)
	for lines.Scan() {
		_ = encoder.Encode(answer(operations, codeOf, lines.Bytes()))
		_ = answers.Flush()
	}
}

func answer(operations Operations, codeOf func(error) int, line []byte) Answer {
	var request Request
	err := json.Unmarshal(line, &request)
	if err == nil {
		operation, known := operations[request.Op]
		if !known {
			err = fmt.Errorf("no operation %s", request.Op)
		} else {
			var result Answer
			if result, err = operation(request); err == nil {
				if result == nil {
					result = Answer{}
				}
				result["ok"] = true
				return result
			}
		}
	}
	return Answer{"ok": false, "code": codeOf(err), "message": err.Error()}
}
