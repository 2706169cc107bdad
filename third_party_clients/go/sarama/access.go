package main

import (
	"crypto/sha256"
	"crypto/sha512"
	"hash"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"headrace.compatibility/clients/driver"
)

// conversation is SCRAM, which Sarama leaves to others.
type conversation struct {
	hash func() hash.Hash
	*scram.ClientConversation
}

func (c *conversation) Begin(user, password, authorization string) error {
	client, err := scram.HashGeneratorFcn(c.hash).NewClient(user, password, authorization)
	if err != nil {
		return err
	}
	c.ClientConversation = client.NewConversation()
	return nil
}

// secure gives a configuration what a secured broker asks for.
func secure(config *sarama.Config) {
	given := driver.AccessFromEnvironment()
	if given.Protocol == "" {
		return
	}
	config.Net.TLS.Enable = true
	config.Net.TLS.Config = given.TLS()
	if given.Mechanism == "" {
		return
	}
	config.Net.SASL.Enable = true
	config.Net.SASL.Mechanism = sarama.SASLMechanism(given.Mechanism)
	config.Net.SASL.User, config.Net.SASL.Password = given.User, given.Password
	hashes := map[string]func() hash.Hash{"SCRAM-SHA-256": sha256.New, "SCRAM-SHA-512": sha512.New}
	if made := hashes[given.Mechanism]; made != nil {
		config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &conversation{hash: made} }
	}
}
