package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"headrace.compatibility/clients/driver"
)

type member struct {
	group      string
	topic      string
	client     *kgo.Client
	assignment driver.Assignment
}

// members holds the members of consumer groups, by name.
type members struct {
	program program
	joined  map[string]*member
}

func newMembers(p program) *members { return &members{p, map[string]*member{}} }

func (m *members) operations() driver.Operations {
	return driver.Operations{
		"join": m.join, "poll": m.poll, "commit": m.commit, "committed": m.committed,
		"seek": m.seek, "pause": m.pause, "resume": m.resume, "leave": m.leave,
	}
}

func (m *members) join(r driver.Request) (driver.Answer, error) {
	one := &member{group: r.Group, topic: r.Topic}
	revoke := func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
		one.assignment.Revoke(lost[one.topic])
	}
	options := []kgo.Opt{
		kgo.ConsumerGroup(r.Group),
		kgo.ConsumeTopics(r.Topic),
		kgo.SessionTimeout(time.Duration(r.SessionMs) * time.Millisecond),
		kgo.HeartbeatInterval(time.Duration(r.HeartbeatMs) * time.Millisecond),
		kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.OnPartitionsRevoked(revoke),
		kgo.OnPartitionsLost(revoke),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, added map[string][]int32) {
			one.assignment.Add(added[one.topic])
		}),
	}
	if r.Cooperative {
		options = append(options, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	} else {
		options = append(options, kgo.Balancers(kgo.RangeBalancer()))
	}
	if r.Instance != nil {
		options = append(options, kgo.InstanceID(*r.Instance))
	}
	if r.CommittedOnly {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	client, err := m.program.client(options...)
	one.client = client
	m.joined[r.Member] = one
	return nil, err
}

func (m *members) poll(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	deadline, cancel := context.WithTimeout(context.Background(), time.Duration(r.TimeoutMs)*time.Millisecond)
	defer cancel()
	fetches := one.client.PollFetches(deadline)
	for _, failure := range fetches.Errors() {
		if !errors.Is(failure.Err, context.DeadlineExceeded) {
			return nil, failure.Err
		}
	}
	return one.assignment.Answer(reads(fetches)), nil
}

func reads(fetches kgo.Fetches) []driver.Read {
	found := []driver.Read{}
	for _, record := range fetches.Records() {
		found = append(found, driver.Read{Partition: record.Partition, Offset: record.Offset, Value: record.Value})
	}
	return found
}

func (m *members) commit(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	offsets := map[int32]kgo.EpochOffset{}
	for partition, offset := range r.Offsets {
		offsets[partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	deadline, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	withMetadata := kgo.PreCommitFnContext(deadline, func(request *kmsg.OffsetCommitRequest) error {
		for t := range request.Topics {
			for p := range request.Topics[t].Partitions {
				request.Topics[t].Partitions[p].Metadata = &r.Metadata
			}
		}
		return nil
	})
	var failure error
	one.client.CommitOffsetsSync(withMetadata, map[string]map[int32]kgo.EpochOffset{one.topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, _ *kmsg.OffsetCommitResponse, err error) {
			failure = err
		})
	return nil, failure
}

func (m *members) committed(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	answer, err := m.program.admin.FetchOffsets(context.Background(), one.group)
	if err != nil {
		return nil, err
	}
	found := map[int32]driver.Committed{}
	for _, partition := range r.Parts {
		if at, known := answer.Lookup(one.topic, partition); known {
			found[partition] = driver.Committed{Offset: at.At, Metadata: at.Metadata}
		}
	}
	return driver.Answer{"committed": found}, nil
}

func (m *members) seek(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	one.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{
		one.topic: {r.Partition: {Epoch: -1, Offset: r.Offset}},
	})
	return nil, nil
}

func (m *members) pause(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	one.client.PauseFetchPartitions(map[string][]int32{one.topic: {r.Partition}})
	return nil, nil
}

func (m *members) resume(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	one.client.ResumeFetchPartitions(map[string][]int32{one.topic: {r.Partition}})
	return nil, nil
}

func (m *members) leave(r driver.Request) (driver.Answer, error) {
	if one := m.joined[r.Member]; one != nil {
		one.client.Close()
		delete(m.joined, r.Member)
	}
	return nil, nil
}
