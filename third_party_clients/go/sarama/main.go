// Sarama, driven by JSON lines on stdin. usage: sarama BOOTSTRAP
package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"

	"headrace.compatibility/clients/driver"
)

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

var acks = map[string]sarama.RequiredAcks{"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll}

type program struct{ brokers []string }

func configuration() *sarama.Config {
	config := sarama.NewConfig()
	config.Metadata.AllowAutoTopicCreation = false
	secure(config)
	return config
}

func (p program) produce(r driver.Request) (driver.Answer, error) {
	config := configuration()
	config.Metadata.AllowAutoTopicCreation = true
	config.Producer.RequiredAcks = acks[r.Acks]
	config.Producer.Compression = codecs[r.Compression]
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	config.Producer.MaxMessageBytes = 64 << 20
	config.Producer.Flush.Frequency = 20 * time.Millisecond
	if r.Idempotent {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer(p.brokers, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	var messages []*sarama.ProducerMessage
	for _, one := range r.Records {
		messages = append(messages, message(r, one))
	}
	if err := producer.SendMessages(messages); err != nil {
		return nil, err
	}
	offsets := []int64{}
	for _, one := range messages {
		offsets = append(offsets, one.Offset)
	}
	return driver.Answer{"offsets": offsets}, nil
}

func message(r driver.Request, one driver.Record) *sarama.ProducerMessage {
	result := &sarama.ProducerMessage{Topic: r.Topic, Partition: r.Partition}
	if one.Key != nil {
		result.Key = sarama.ByteEncoder(one.Key)
	}
	if one.Value != nil {
		result.Value = sarama.ByteEncoder(one.Value)
	}
	if one.Timestamp != nil {
		result.Timestamp = time.UnixMilli(*one.Timestamp)
	}
	for _, header := range one.Headers {
		result.Headers = append(result.Headers, sarama.RecordHeader{Key: []byte(header.Key), Value: header.Value})
	}
	return result
}

func start(client sarama.Client, r driver.Request) (int64, error) {
	switch r.At {
	case "start":
		return sarama.OffsetOldest, nil
	case "end":
		return sarama.OffsetNewest, nil
	case "offset":
		return r.Number(), nil
	case "timestamp":
		offset, err := client.GetOffset(r.Topic, r.Partition, r.Number())
		if err == nil && offset < 0 {
			return sarama.OffsetNewest, nil
		}
		return offset, err
	}
	return 0, fmt.Errorf("no start at %s", r.At)
}

func (p program) consume(r driver.Request) (driver.Answer, error) {
	config := configuration()
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Return.Errors = true
	client, err := sarama.NewClient(p.brokers, config)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	at, err := start(client, r)
	if err != nil {
		return nil, err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(r.Topic, r.Partition, at)
	if err != nil {
		return nil, err
	}
	defer partition.AsyncClose()
	deadline := time.After(time.Duration(r.TimeoutMs) * time.Millisecond)
	found := []driver.Record{}
	for len(found) < r.Count {
		select {
		case <-deadline:
			return driver.Answer{"records": found}, nil
		case failure := <-partition.Errors():
			return nil, failure.Err
		case one := <-partition.Messages():
			found = append(found, describe(one))
		}
	}
	return driver.Answer{"records": found}, nil
}

func describe(one *sarama.ConsumerMessage) driver.Record {
	timestamp := one.Timestamp.UnixMilli()
	result := driver.Record{
		Offset: one.Offset, Timestamp: &timestamp, Key: one.Key, Value: one.Value, Headers: []driver.Header{},
	}
	for _, header := range one.Headers {
		result.Headers = append(result.Headers, driver.Header{Key: string(header.Key), Value: header.Value})
	}
	return result
}

func codeOf(err error) int {
	var code sarama.KError
	if errors.As(err, &code) {
		return int(code)
	}
	var batch sarama.ProducerErrors
	if errors.As(err, &batch) && len(batch) > 0 {
		return codeOf(batch[0].Err)
	}
	var topic *sarama.TopicError
	if errors.As(err, &topic) {
		return int(topic.Err)
	}
	var partition *sarama.TopicPartitionError
	if errors.As(err, &partition) {
		return int(partition.Err)
	}
	return -1
}

func main() {
	p := program{brokers: []string{os.Args[1]}}
	admin, err := sarama.NewClusterAdmin(p.brokers, configuration())
	if err != nil {
		panic(err)
	}
	defer admin.Close()
	operations := administration(admin)
	operations["produce"] = p.produce
	operations["consume"] = p.consume
	operations["list_offsets"] = p.listOffsets
	for name, operation := range newMembers(p, admin).operations() {
		operations[name] = operation
	}
	driver.Serve(operations, codeOf)
}
