package main

import (
	"strconv"

	"github.com/IBM/sarama"

	"headrace.compatibility/clients/driver"
)

func administration(admin sarama.ClusterAdmin) driver.Operations {
	return driver.Operations{
		"create": func(r driver.Request) (driver.Answer, error) {
			return nil, create(admin, r)
		},
		"delete": func(r driver.Request) (driver.Answer, error) {
			return nil, admin.DeleteTopic(r.Topic)
		},
		"describe": func(r driver.Request) (driver.Answer, error) {
			return describeTopic(admin, r)
		},
		"add_partitions": func(r driver.Request) (driver.Answer, error) {
			return nil, admin.CreatePartitions(r.Topic, int32(r.Count), nil, false)
		},
		"describe_configs": func(r driver.Request) (driver.Answer, error) {
			return describeConfigs(admin, r)
		},
		"alter_config": func(r driver.Request) (driver.Answer, error) {
			return nil, alterConfig(admin, r)
		},
		"delete_records": func(r driver.Request) (driver.Answer, error) {
			return nil, admin.DeleteRecords(r.Topic, map[int32]int64{r.Partition: r.Offset})
		},
		"describe_cluster": func(driver.Request) (driver.Answer, error) {
			return describeCluster(admin)
		},
		"describe_log_dirs": func(r driver.Request) (driver.Answer, error) {
			return describeLogDirs(admin, r)
		},
	}
}

func create(admin sarama.ClusterAdmin, r driver.Request) error {
	configs := map[string]*string{}
	for name, value := range r.Configs {
		configs[name] = &value
	}
	return admin.CreateTopic(r.Topic, &sarama.TopicDetail{
		NumPartitions: r.Partitions, ReplicationFactor: 1, ConfigEntries: configs,
	}, false)
}

func describeTopic(admin sarama.ClusterAdmin, r driver.Request) (driver.Answer, error) {
	topics, err := admin.DescribeTopics([]string{r.Topic})
	if err != nil {
		return nil, err
	}
	if topics[0].Err != sarama.ErrNoError {
		return nil, topics[0].Err
	}
	partitions := make([]driver.Partition, len(topics[0].Partitions))
	for _, one := range topics[0].Partitions {
		partitions[one.ID] = driver.Partition{
			Partition: one.ID, Leader: one.Leader, Replicas: one.Replicas, Isr: one.Isr,
		}
	}
	return driver.Answer{"partitions": partitions}, nil
}

func describeConfigs(admin sarama.ClusterAdmin, r driver.Request) (driver.Answer, error) {
	entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: r.Topic})
	if err != nil {
		return nil, err
	}
	configs := map[string]any{}
	for _, entry := range entries {
		configs[entry.Name] = map[string]any{"value": entry.Value, "source": entry.Source.String()}
	}
	return driver.Answer{"configs": configs}, nil
}

func alterConfig(admin sarama.ClusterAdmin, r driver.Request) error {
	how := map[string]sarama.IncrementalAlterConfigsOperation{
		"set":      sarama.IncrementalAlterConfigsOperationSet,
		"delete":   sarama.IncrementalAlterConfigsOperationDelete,
		"append":   sarama.IncrementalAlterConfigsOperationAppend,
		"subtract": sarama.IncrementalAlterConfigsOperationSubtract,
	}[r.How]
	value := r.Text()
	return admin.IncrementalAlterConfig(sarama.TopicResource, r.Topic,
		map[string]sarama.IncrementalAlterConfigsEntry{r.Name: {Operation: how, Value: &value}}, false)
}

func describeCluster(admin sarama.ClusterAdmin) (driver.Answer, error) {
	brokers, controller, err := admin.DescribeCluster()
	if err != nil {
		return nil, err
	}
	nodes := []int32{}
	for _, broker := range brokers {
		nodes = append(nodes, broker.ID())
	}
	return driver.Answer{"controller": controller, "nodes": nodes}, nil
}

func describeLogDirs(admin sarama.ClusterAdmin, r driver.Request) (driver.Answer, error) {
	brokers, _, err := admin.DescribeCluster()
	if err != nil {
		return nil, err
	}
	directories, err := admin.DescribeLogDirs([]int32{brokers[0].ID()})
	if err != nil {
		return nil, err
	}
	replicas := []any{}
	for _, directory := range directories[brokers[0].ID()] {
		for _, topic := range directory.Topics {
			if topic.Topic != r.Topic {
				continue
			}
			for _, one := range topic.Partitions {
				replicas = append(replicas, map[string]any{"partition": one.PartitionID, "size": one.Size})
			}
		}
	}
	return driver.Answer{"replicas": replicas}, nil
}

func (p program) listOffsets(r driver.Request) (driver.Answer, error) {
	client, err := sarama.NewClient(p.brokers, configuration())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	at := map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest, "max_timestamp": -3}
	when, named := at[r.At]
	if !named {
		if when, err = strconv.ParseInt(r.At, 10, 64); err != nil {
			return nil, err
		}
	}
	offset, err := client.GetOffset(r.Topic, r.Partition, when)
	return driver.Answer{"offset": offset}, err
}
