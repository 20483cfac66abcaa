package synth

import "math"

// popularityClasses is the number of equally large classes that approximate the distribution of
// popularity over neurons.
const popularityClasses = 8

// process holds the parameters of one layer's activity process; the package documentation explains
// them. All shares and probabilities are fractions of 1.
type process struct {
	core     float64 // share of the layer's neurons that are always in topic
	coreRate float64 // probability that a core neuron is predicted at a token
	topic    float64 // probability that a neuron of median popularity is in topic
	rate     float64 // probability that a neuron in topic is predicted at a token
	dwell    float64 // mean number of tokens that a neuron stays in topic
	spread   float64 // standard deviation of the log-odds of popularity
}

// class is a group of neurons with the same statistics.
type class struct {
	share   float64 // of the layer's neurons
	inTopic float64 // stationary probability of being in topic
	rate    float64 // probability of being predicted at a token in topic
	enter   float64 // probability per token of entering the topic
	exit    float64 // probability per token of leaving the topic
}

// scaleOdds multiplies the odds p/(1−p) by y and returns the new probability.
func scaleOdds(p, y float64) float64 { return p * y / (1 - p + p*y) }

// scaled returns the process with the odds of its three shares multiplied by y. The mean activity
// grows with y from 0 to 1; the time scale stays.
func (p process) scaled(y float64) process {
	p.core, p.topic, p.rate = scaleOdds(p.core, y), scaleOdds(p.topic, y), scaleOdds(p.rate, y)
	return p
}

// classes lists the core class, then the popularity classes, the most popular first. Popularity is
// log-normal in the odds. Each class has the middle quantile of its share of neurons.
func (p process) classes() []class {
	list := make([]class, 0, 1+popularityClasses)
	list = append(list, class{share: p.core, inTopic: 1, rate: p.coreRate, enter: 1})
	exit := 1 / p.dwell
	for i := range popularityClasses {
		quantile := 1 - (float64(i)+0.5)/popularityClasses
		z := math.Sqrt2 * math.Erfinv(2*quantile-1)
		in := scaleOdds(p.topic, math.Exp(p.spread*z))
		list = append(list, class{
			share:   (1 - p.core) / popularityClasses,
			inTopic: in,
			rate:    p.rate,
			enter:   math.Min(1, exit*in/(1-in)), // stationary: as many neurons enter as leave
			exit:    exit,
		})
	}
	return list
}

// idle returns the probability that a neuron of the class is active in none of k ≥ 1 consecutive
// tokens, if it is active with probability rate at every token in topic: π·D·(T·D)^(k−1)·1, with π
// the stationary distribution over (in topic, out of topic), T the transition matrix and D =
// diag(1−rate, 1).
func (c class) idle(k int, rate float64) float64 {
	in, out := c.inTopic*(1-rate), 1-c.inTopic
	for range k - 1 {
		in, out = (in*(1-c.exit)+out*c.enter)*(1-rate), in*c.exit+out*(1-c.enter)
	}
	return in + out
}

// layer is the process of one layer, with the probabilities of the true mask given the predicted
// one.
type layer struct {
	classes []class
	hit     float64 // probability that a predicted neuron is active
	missed  float64 // probability that an unpredicted neuron in topic is active
}

// trueRate returns the probability that a neuron of class c in topic is active.
func (l *layer) trueRate(c class) float64 { return c.rate*l.hit + (1-c.rate)*l.missed }

// predictedSAgg returns the expected share of a layer's neurons that are predicted in at least one
// of k consecutive tokens.
func (l *layer) predictedSAgg(k int) float64 {
	sum := 0.0
	for _, c := range l.classes {
		sum += c.share * (1 - c.idle(k, c.rate))
	}
	return sum
}

// trueSAgg returns the expected share of a layer's neurons that are active in at least one of k
// consecutive tokens.
func (l *layer) trueSAgg(k int) float64 {
	sum := 0.0
	for _, c := range l.classes {
		sum += c.share * (1 - c.idle(k, l.trueRate(c)))
	}
	return sum
}

// bisect returns the y in (lo, hi) with f(y) = want for an increasing f, in float64 precision.
func bisect(lo, hi, want float64, f func(y float64) float64) float64 {
	for range 60 { // halvings of a range of at most 41 e-folds
		mid := math.Sqrt(lo * hi) // lo and hi are positive and may be orders of magnitude apart
		if f(mid) < want {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Sqrt(lo * hi)
}
