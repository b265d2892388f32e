#pragma once

/// \file
/// Sequences and block stores belong to the process that made them. A forked child has copies of
/// them, but neither their threads nor the right to use their connections.

#include <holdfast/version.hpp>

#include "base/fork_detector.hpp"

#include <memory>
#include <utility>

namespace HOLDFAST_NAMESPACE::detail::sequence {

/// Throws errc::invalid_argument in a child of the process that constructed the detector.
void check_process(const fork_detector& detector);

/// Makes a shared T, which must have `bool inherited_by_fork() const`. It is never destroyed in a
/// forked child: the destructor would wait for locks and threads that only the parent has.
template <class T, class... Arguments>
[[nodiscard]] std::shared_ptr<T> make_process_bound(Arguments&&... arguments) {
  return std::shared_ptr<T>(new T(std::forward<Arguments>(arguments)...), [](T* object) {
    if (!object->inherited_by_fork()) delete object;
  });
}

}  // namespace HOLDFAST_NAMESPACE::detail::sequence
