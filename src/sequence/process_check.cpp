#include "sequence/process_check.hpp"

#include <holdfast/error.hpp>

namespace HOLDFAST_NAMESPACE::detail::sequence {

void check_process(const fork_detector& detector) {
  if (detector.inherited_by_fork())
    throw error(errc::invalid_argument,
                "this sequence was opened before fork and belongs to the parent process; open the "
                "database again in the child");
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
