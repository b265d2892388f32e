#include "serve/live/event_metrics.hpp"

namespace HOLDFAST_NAMESPACE::detail::serve {

event_metrics::event_metrics(metrics_sink& sink)
    : streams_(sink.gauge("holdfast_sse_streams", {}, "Open streams of events")),
      refused_(sink.counter("holdfast_sse_refused_total", {},
                            "Streams that were refused because there were too many, or at the end "
                            "of the server")),
      published_(sink.counter("holdfast_sse_events_total", {}, "Events that were published")),
      too_large_(sink.counter("holdfast_sse_dropped_events_total", {},
                              "Events that were dropped because they were too large")),
      resumed_(sink.counter("holdfast_sse_resumed_total", {},
                            "Streams that continued after the last event of their client")) {}

void event_metrics::update(const event_hub_counts& counts) {
  streams_->set(static_cast<double>(counts.streams));
  refused_.follow(counts.refused);
  published_.follow(counts.published);
  too_large_.follow(counts.too_large);
  resumed_.follow(counts.resumed);
}

}  // namespace HOLDFAST_NAMESPACE::detail::serve
