// What is there up to 5.1.2: no push consumer, and no recall.
package main

import (
	"time"

	rocketmq "github.com/apache/rocketmq-clients/golang/v5"
)

func simpleOptions(await time.Duration, wanted map[string]*rocketmq.FilterExpression) []rocketmq.SimpleConsumerOption {
	return []rocketmq.SimpleConsumerOption{rocketmq.WithAwaitDuration(await), rocketmq.WithSubscriptionExpressions(wanted)}
}

func handleOf(*rocketmq.SendReceipt) any { return nil }

func recall(rocketmq.Producer, command) (any, error) { return nil, missing{} }

func push(command) (any, error) { return nil, missing{} }
