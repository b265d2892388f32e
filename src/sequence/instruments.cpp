#include "sequence/instruments.hpp"

namespace HOLDFAST_NAMESPACE::detail::sequence {

instruments::instruments(metrics_sink& sink, std::string_view sequence_name)
    : ids(sink.counter("holdfast_sequence_ids_total", {{"sequence", sequence_name}},
                       "Ids handed out, counted when blocks come")),
      refills(sink.counter("holdfast_sequence_refills_total", {{"sequence", sequence_name}},
                           "Blocks granted")),
      failures(sink.counter("holdfast_sequence_refill_failures_total",
                            {{"sequence", sequence_name}}, "Refills that failed")),
      stalls(sink.counter("holdfast_sequence_stalls_total", {{"sequence", sequence_name}},
                          "Calls that waited for a block")),
      redraws(sink.counter("holdfast_sequence_redraws_total", {{"sequence", sequence_name}},
                           "Draws that fell between two blocks")),
      refill_seconds(sink.histogram("holdfast_sequence_refill_seconds",
                                    {{"sequence", sequence_name}}, "How long refills took")),
      at_risk(sink.gauge("holdfast_sequence_ids_at_risk", {{"sequence", sequence_name}},
                         "Ids leased and not used: lost if the process dies")),
      remaining(sink.gauge("holdfast_sequence_ids_left", {{"sequence", sequence_name}},
                           "Ids until the sequence ends")) {}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
