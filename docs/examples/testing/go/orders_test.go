package orders

import (
	"context"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

func TestOrderIsBilled(t *testing.T) {
	mq := NewRocketMQ(t)
	orders := mq.Topic("Orders", 1)

	shop, err := rocketmq.NewProducer(
		producer.WithNameServer(mq.NameServers), producer.WithGroupName(mq.Group("shop")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err = shop.Start(); err != nil {
		t.Fatal(err)
	}
	defer shop.Shutdown()
	message := primitive.NewMessage(orders, []byte("book"))
	if _, err = shop.SendSync(context.Background(), message); err != nil {
		t.Fatal(err)
	}

	billing, err := rocketmq.NewPushConsumer(
		consumer.WithNameServer(mq.NameServers), consumer.WithGroupName(mq.Group("billing")),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	if err != nil {
		t.Fatal(err)
	}
	billed := make(chan string, 1)
	bill := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, message := range messages {
			billed <- string(message.Body)
		}
		return consumer.ConsumeSuccess, nil
	}
	if err = billing.Subscribe(orders, consumer.MessageSelector{}, bill); err != nil {
		t.Fatal(err)
	}
	if err = billing.Start(); err != nil {
		t.Fatal(err)
	}
	defer billing.Shutdown()
	select {
	case order := <-billed:
		if order != "book" {
			t.Fatalf("billed %q", order)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing was billed")
	}
}
