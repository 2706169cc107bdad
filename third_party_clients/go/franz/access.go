package main

import (
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"headrace.compatibility/clients/driver"
)

// access has the options of a secured broker, or none.
func access() []kgo.Opt {
	given := driver.AccessFromEnvironment()
	if given.Protocol == "" {
		return nil
	}
	options := []kgo.Opt{kgo.DialTLSConfig(given.TLS())}
	var mechanism sasl.Mechanism
	switch given.Mechanism {
	case "PLAIN":
		mechanism = plain.Auth{User: given.User, Pass: given.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		mechanism = scram.Auth{User: given.User, Pass: given.Password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		mechanism = scram.Auth{User: given.User, Pass: given.Password}.AsSha512Mechanism()
	default:
		return options
	}
	return append(options, kgo.SASL(mechanism))
}
