// franz-go, driven by JSON lines on stdin. usage: franz BOOTSTRAP
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"headrace.compatibility/clients/driver"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

type program struct {
	bootstrap string
	admin     *kadm.Client
}

func (p program) client(options ...kgo.Opt) (*kgo.Client, error) {
	options = append(options, access()...)
	return kgo.NewClient(append(options, kgo.SeedBrokers(p.bootstrap))...)
}

func (p program) produce(r driver.Request) (driver.Answer, error) {
	options := []kgo.Opt{
		kgo.AllowAutoTopicCreation(),
		kgo.RequiredAcks(acks[r.Acks]),
		kgo.ProducerBatchCompression(codecs[r.Compression]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(64 << 20),
		kgo.BrokerMaxWriteBytes(100 << 20),
		kgo.RecordDeliveryTimeout(20 * time.Second),
		kgo.ProducerLinger(20 * time.Millisecond),
	}
	if !r.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := p.client(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var records []*kgo.Record
	for _, one := range r.Records {
		record := &kgo.Record{Topic: r.Topic, Partition: r.Partition, Key: one.Key, Value: one.Value}
		if one.Timestamp != nil {
			record.Timestamp = time.UnixMilli(*one.Timestamp)
		}
		for _, header := range one.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Key, Value: header.Value})
		}
		records = append(records, record)
	}
	results := client.ProduceSync(context.Background(), records...)
	offsets := []int64{}
	for _, result := range results {
		if result.Err != nil {
			return nil, result.Err
		}
		offsets = append(offsets, result.Record.Offset)
	}
	return driver.Answer{"offsets": offsets}, nil
}

func start(r driver.Request) (kgo.Offset, error) {
	switch r.At {
	case "start":
		return kgo.NewOffset().AtStart(), nil
	case "end":
		return kgo.NewOffset().AtEnd(), nil
	case "offset":
		return kgo.NewOffset().At(r.Number()), nil
	case "timestamp":
		return kgo.NewOffset().AfterMilli(r.Number()), nil
	}
	return kgo.Offset{}, fmt.Errorf("no start at %s", r.At)
}

func (p program) consume(r driver.Request) (driver.Answer, error) {
	at, err := start(r)
	if err != nil {
		return nil, err
	}
	client, err := p.client(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.Topic: {r.Partition: at}}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(100*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	deadline, cancel := context.WithTimeout(context.Background(), time.Duration(r.TimeoutMs)*time.Millisecond)
	defer cancel()
	found := []driver.Record{}
	for len(found) < r.Count && deadline.Err() == nil {
		fetches := client.PollFetches(deadline)
		for _, failure := range fetches.Errors() {
			if !errors.Is(failure.Err, context.DeadlineExceeded) {
				return nil, failure.Err
			}
		}
		for _, record := range fetches.Records() {
			if len(found) < r.Count {
				found = append(found, describe(record))
			}
		}
	}
	return driver.Answer{"records": found}, nil
}

func describe(record *kgo.Record) driver.Record {
	timestamp := record.Timestamp.UnixMilli()
	result := driver.Record{
		Offset: record.Offset, Timestamp: &timestamp, Key: record.Key, Value: record.Value,
		Headers: []driver.Header{},
	}
	for _, header := range record.Headers {
		result.Headers = append(result.Headers, driver.Header{Key: header.Key, Value: header.Value})
	}
	return result
}

func main() {
	p := program{bootstrap: os.Args[1]}
	client, err := p.client()
	if err != nil {
		panic(err)
	}
	defer client.Close()
	p.admin = kadm.NewClient(client)
	operations := p.administration()
	operations["produce"] = p.produce
	operations["consume"] = p.consume
	for name, operation := range newMembers(p).operations() {
		operations[name] = operation
	}
	for name, operation := range newTransactions(p).operations() {
		operations[name] = operation
	}
	driver.Serve(operations, func(err error) int {
		var code *kerr.Error
		if errors.As(err, &code) {
			return int(code.Code)
		}
		return -1
	})
}
