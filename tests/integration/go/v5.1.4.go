// What is there from 5.1.3 on.
package main

import (
	"context"
	"time"

	rocketmq "github.com/apache/rocketmq-clients/golang/v5"
)

func simpleOptions(await time.Duration, wanted map[string]*rocketmq.FilterExpression) []rocketmq.SimpleConsumerOption {
	return []rocketmq.SimpleConsumerOption{
		rocketmq.WithSimpleAwaitDuration(await), rocketmq.WithSimpleSubscriptionExpressions(wanted)}
}

func handleOf(receipt *rocketmq.SendReceipt) any { return receipt.RecallHandle }

func recall(producer rocketmq.Producer, c command) (any, error) {
	return producer.Recall(context.Background(), c.Topic, c.Handle)
}

func push(c command) (any, error) {
	found := &box{}
	boxes[c.Name] = found
	listener := &rocketmq.FuncMessageListener{Consume: func(m *rocketmq.MessageView) rocketmq.ConsumerResult {
		found.add(m)
		if _, isBad := m.GetProperties()["bad"]; isBad && m.GetDeliveryAttempt() <= c.Fails {
			return rocketmq.FAILURE
		}
		return rocketmq.SUCCESS
	}}
	made, err := rocketmq.NewPushConsumer(config(c.Group),
		rocketmq.WithPushAwaitDuration(5*time.Second),
		rocketmq.WithPushSubscriptionExpressions(wanted(c)),
		rocketmq.WithPushMessageListener(listener),
		rocketmq.WithPushConsumptionThreadCount(4),
		rocketmq.WithPushMaxCacheMessageCount(1024))
	if err != nil {
		return nil, err
	}
	stops[c.Name] = made.GracefulStop
	return nil, made.Start()
}
