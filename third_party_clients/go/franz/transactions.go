package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"headrace.compatibility/clients/driver"
)

// transactions holds the transactional producers, by name.
type transactions struct {
	program   program
	producers map[string]*kgo.Client
}

func newTransactions(p program) *transactions { return &transactions{p, map[string]*kgo.Client{}} }

func (t *transactions) operations() driver.Operations {
	return driver.Operations{
		"txn_open": t.open, "txn_begin": t.begin, "txn_send": t.send, "txn_end": t.end, "txn_close": t.close,
		"txn_transform": t.transform,
	}
}

func patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 15*time.Second)
}

func (t *transactions) open(r driver.Request) (driver.Answer, error) {
	client, err := t.program.client(
		kgo.TransactionalID(r.TransactionalID),
		kgo.TransactionTimeout(time.Duration(r.TimeoutMs)*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return nil, err
	}
	t.producers[r.Producer] = client
	deadline, cancel := patience()
	defer cancel()
	_, _, err = client.ProducerID(deadline)
	return nil, err
}

func (t *transactions) begin(r driver.Request) (driver.Answer, error) {
	return nil, t.producers[r.Producer].BeginTransaction()
}

func (t *transactions) send(r driver.Request) (driver.Answer, error) {
	var records []*kgo.Record
	for _, value := range r.Values {
		records = append(records, &kgo.Record{Topic: r.Topic, Partition: r.Partition, Value: value})
	}
	deadline, cancel := patience()
	defer cancel()
	return nil, t.producers[r.Producer].ProduceSync(deadline, records...).FirstErr()
}

func (t *transactions) end(r driver.Request) (driver.Answer, error) {
	deadline, cancel := patience()
	defer cancel()
	client := t.producers[r.Producer]
	if r.How == "commit" {
		return nil, client.EndTransaction(deadline, kgo.TryCommit)
	}
	if err := client.AbortBufferedRecords(deadline); err != nil {
		return nil, err
	}
	return nil, client.EndTransaction(deadline, kgo.TryAbort)
}

func (t *transactions) close(r driver.Request) (driver.Answer, error) {
	if client := t.producers[r.Producer]; client != nil {
		client.Close()
		delete(t.producers, r.Producer)
	}
	return nil, nil
}

// transform reads records as a member of a group, writes them to another topic, and puts both into one
// transaction. The library has a type of its own for it.
func (t *transactions) transform(r driver.Request) (driver.Answer, error) {
	session, err := kgo.NewGroupTransactSession(append(access(),
		kgo.SeedBrokers(t.program.bootstrap),
		kgo.TransactionalID(r.TransactionalID),
		kgo.ConsumerGroup(r.Group),
		kgo.ConsumeTopics(r.Topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(300*time.Millisecond),
	)...)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	deadline, cancel := patience()
	defer cancel()
	if err := session.Begin(); err != nil {
		return nil, err
	}
	found := []driver.Read{}
	for len(found) < r.Count {
		fetches := session.PollFetches(deadline)
		if failures := fetches.Errors(); len(failures) > 0 {
			return nil, failures[0].Err
		}
		for _, one := range reads(fetches) {
			found = append(found, one)
			record := &kgo.Record{Topic: r.To, Value: one.Value}
			if err := session.ProduceSync(deadline, record).FirstErr(); err != nil {
				return nil, err
			}
		}
	}
	committed, err := session.End(deadline, kgo.TransactionEndTry(r.How == "commit"))
	if err == nil && committed != (r.How == "commit") {
		err = errors.New("the transaction has not ended as it should")
	}
	return driver.Answer{"records": found}, err
}
