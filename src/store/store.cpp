#include <holdfast/store.hpp>

namespace HOLDFAST_NAMESPACE {

store::~store() = default;

holdfast::peer store::peer() const noexcept { return holdfast::peer::none; }

}  // namespace HOLDFAST_NAMESPACE
