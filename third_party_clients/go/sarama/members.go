package main

import (
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"headrace.compatibility/clients/driver"
)

// member takes part in generation after generation, on a goroutine of its own, until it is told to leave.
type member struct {
	name       string
	topic      string
	group      sarama.ConsumerGroup
	assignment driver.Assignment
	records    chan driver.Read
	failures   chan error
	end        context.CancelFunc
	ended      chan struct{}
	lock       sync.Mutex
	session    sarama.ConsumerGroupSession
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = session
	m.assignment.Add(session.Claims()[m.topic])
	return nil
}

func (m *member) Cleanup(session sarama.ConsumerGroupSession) error {
	m.assignment.Revoke(session.Claims()[m.topic])
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case one, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.records <- driver.Read{Partition: one.Partition, Offset: one.Offset, Value: one.Value}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) run(ctx context.Context) {
	defer close(m.ended)
	for ctx.Err() == nil {
		if err := m.group.Consume(ctx, []string{m.topic}, m); err != nil && ctx.Err() == nil {
			m.failures <- err
			return
		}
	}
}

// members holds the members of consumer groups, by name.
type members struct {
	program program
	admin   sarama.ClusterAdmin
	joined  map[string]*member
}

func newMembers(p program, admin sarama.ClusterAdmin) *members {
	return &members{p, admin, map[string]*member{}}
}

func (m *members) operations() driver.Operations {
	return driver.Operations{
		"join": m.join, "poll": m.poll, "commit": m.commit, "committed": m.committed,
		"pause": m.pause, "resume": m.resume, "leave": m.leave,
	}
}

func (m *members) join(r driver.Request) (driver.Answer, error) {
	config := configuration()
	config.Version = sarama.MaxVersion
	config.Consumer.Group.Session.Timeout = time.Duration(r.SessionMs) * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = time.Duration(r.HeartbeatMs) * time.Millisecond
	config.Consumer.Group.Rebalance.Retry.Backoff = 100 * time.Millisecond
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	if r.Instance != nil {
		config.Consumer.Group.InstanceId = *r.Instance
	}
	if r.CommittedOnly {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	group, err := sarama.NewConsumerGroup(m.program.brokers, r.Group, config)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	one := &member{
		name: r.Group, topic: r.Topic, group: group, end: end, ended: make(chan struct{}),
		records: make(chan driver.Read, 1000), failures: make(chan error, 1),
	}
	m.joined[r.Member] = one
	go one.run(ctx)
	return nil, nil
}

func (m *members) poll(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	deadline := time.After(time.Duration(r.TimeoutMs) * time.Millisecond)
	found := []driver.Read{}
	for {
		select {
		case record := <-one.records:
			found = append(found, record)
		case failure := <-one.failures:
			return nil, failure
		case <-deadline:
			return one.assignment.Answer(found), nil
		}
	}
}

func (m *members) commit(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	one.lock.Lock()
	defer one.lock.Unlock()
	for partition, offset := range r.Offsets {
		one.session.MarkOffset(one.topic, partition, offset, r.Metadata)
	}
	one.session.Commit()
	return nil, nil
}

func (m *members) committed(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	answer, err := m.admin.ListConsumerGroupOffsets(one.name, map[string][]int32{one.topic: r.Parts})
	if err != nil {
		return nil, err
	}
	found := map[int32]driver.Committed{}
	for _, partition := range r.Parts {
		if at := answer.GetBlock(one.topic, partition); at != nil && at.Offset >= 0 {
			found[partition] = driver.Committed{Offset: at.Offset, Metadata: at.Metadata}
		}
	}
	return driver.Answer{"committed": found}, nil
}

func (m *members) pause(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	one.group.Pause(map[string][]int32{one.topic: {r.Partition}})
	return nil, nil
}

func (m *members) resume(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	one.group.Resume(map[string][]int32{one.topic: {r.Partition}})
	return nil, nil
}

func (m *members) leave(r driver.Request) (driver.Answer, error) {
	one := m.joined[r.Member]
	if one == nil {
		return nil, nil
	}
	delete(m.joined, r.Member)
	one.end()
	<-one.ended
	return nil, one.group.Close()
}
