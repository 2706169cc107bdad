package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"

	"headrace.compatibility/clients/driver"
)

var background = context.Background()

func (p program) administration() driver.Operations {
	return driver.Operations{
		"create":             p.create,
		"delete":             p.delete,
		"describe":           p.describe,
		"add_partitions":     p.addPartitions,
		"describe_configs":   p.describeConfigs,
		"alter_config":       p.alterConfig,
		"delete_records":     p.deleteRecords,
		"list_offsets":       p.listOffsets,
		"describe_cluster":   p.describeCluster,
		"describe_log_dirs":  p.describeLogDirs,
		"describe_producers": p.describeProducers,
	}
}

func (p program) create(r driver.Request) (driver.Answer, error) {
	configs := map[string]*string{}
	for name, value := range r.Configs {
		configs[name] = kadm.StringPtr(value)
	}
	result, err := p.admin.CreateTopic(background, r.Partitions, 1, configs, r.Topic)
	return nil, errors.Join(err, result.Err)
}

func (p program) delete(r driver.Request) (driver.Answer, error) {
	result, err := p.admin.DeleteTopic(background, r.Topic)
	return nil, errors.Join(err, result.Err)
}

func (p program) describe(r driver.Request) (driver.Answer, error) {
	details, err := p.admin.ListTopics(background, r.Topic)
	if err != nil {
		return nil, err
	}
	topic := details[r.Topic]
	if topic.Err != nil {
		return nil, topic.Err
	}
	partitions := []driver.Partition{}
	for _, one := range topic.Partitions.Sorted() {
		partitions = append(partitions, driver.Partition{
			Partition: one.Partition, Leader: one.Leader, Replicas: one.Replicas, Isr: one.ISR,
		})
	}
	return driver.Answer{"partitions": partitions, "topic_id": topic.ID.String()}, nil
}

func (p program) addPartitions(r driver.Request) (driver.Answer, error) {
	results, err := p.admin.UpdatePartitions(background, r.Count, r.Topic)
	if err != nil {
		return nil, err
	}
	return nil, results[r.Topic].Err
}

func (p program) describeConfigs(r driver.Request) (driver.Answer, error) {
	resources, err := p.admin.DescribeTopicConfigs(background, r.Topic)
	if err != nil {
		return nil, err
	}
	configs := map[string]any{}
	for _, resource := range resources {
		if resource.Err != nil {
			return nil, resource.Err
		}
		for _, config := range resource.Configs {
			configs[config.Key] = map[string]any{"value": config.Value, "source": config.Source.String()}
		}
	}
	return driver.Answer{"configs": configs}, nil
}

func (p program) alterConfig(r driver.Request) (driver.Answer, error) {
	how := map[string]kadm.IncrementalOp{
		"set": kadm.SetConfig, "delete": kadm.DeleteConfig,
		"append": kadm.AppendConfig, "subtract": kadm.SubtractConfig,
	}[r.How]
	change := kadm.AlterConfig{Op: how, Name: r.Name, Value: kadm.StringPtr(r.Text())}
	results, err := p.admin.AlterTopicConfigs(background, []kadm.AlterConfig{change}, r.Topic)
	if err != nil {
		return nil, err
	}
	return nil, results[0].Err
}

func (p program) deleteRecords(r driver.Request) (driver.Answer, error) {
	var offsets kadm.Offsets
	offsets.AddOffset(r.Topic, r.Partition, r.Offset, -1)
	results, err := p.admin.DeleteRecords(background, offsets)
	if err != nil {
		return nil, err
	}
	one, found := results.Lookup(r.Topic, r.Partition)
	if !found {
		return nil, fmt.Errorf("no answer for the partition")
	}
	return driver.Answer{"low_watermark": one.LowWatermark}, one.Err
}

func (p program) listOffsets(r driver.Request) (driver.Answer, error) {
	var results kadm.ListedOffsets
	var err error
	switch r.At {
	case "earliest":
		results, err = p.admin.ListStartOffsets(background, r.Topic)
	case "latest":
		results, err = p.admin.ListEndOffsets(background, r.Topic)
	case "max_timestamp":
		results, err = p.admin.ListMaxTimestampOffsets(background, r.Topic)
	default:
		milliseconds, parseErr := strconv.ParseInt(r.At, 10, 64)
		if parseErr != nil {
			return nil, parseErr
		}
		results, err = p.admin.ListOffsetsAfterMilli(background, milliseconds, r.Topic)
	}
	if err != nil {
		return nil, err
	}
	one, found := results.Lookup(r.Topic, r.Partition)
	if !found {
		return nil, fmt.Errorf("no answer for the partition")
	}
	return driver.Answer{"offset": one.Offset, "timestamp": one.Timestamp}, one.Err
}

func (p program) describeCluster(driver.Request) (driver.Answer, error) {
	metadata, err := p.admin.BrokerMetadata(background)
	if err != nil {
		return nil, err
	}
	return driver.Answer{
		"cluster_id": metadata.Cluster, "controller": metadata.Controller, "nodes": metadata.Brokers.NodeIDs(),
	}, nil
}

func (p program) describeLogDirs(r driver.Request) (driver.Answer, error) {
	brokers, err := p.admin.DescribeAllLogDirs(background, nil)
	if err != nil {
		return nil, err
	}
	replicas := []any{}
	brokers.Each(func(directory kadm.DescribedLogDir) {
		directory.Topics.Each(func(one kadm.DescribedLogDirPartition) {
			if one.Topic == r.Topic {
				replicas = append(replicas, map[string]any{"partition": one.Partition, "size": one.Size})
			}
		})
	})
	return driver.Answer{"replicas": replicas}, nil
}

func (p program) describeProducers(r driver.Request) (driver.Answer, error) {
	var asked kadm.TopicsSet
	asked.Add(r.Topic, r.Partition)
	described, err := p.admin.DescribeProducers(background, asked)
	if err != nil {
		return nil, err
	}
	producers := []any{}
	described.EachProducer(func(one kadm.DescribedProducer) {
		producers = append(producers, map[string]any{
			"producer_id": one.ProducerID, "last_sequence": one.LastSequence,
		})
	})
	return driver.Answer{"producers": producers}, nil
}
