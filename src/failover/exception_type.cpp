#include "failover/exception_type.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <typeinfo>

namespace HOLDFAST_NAMESPACE {

std::string exception_type(const std::exception_ptr& thrown) {
  if (!thrown) return {};
  const std::type_info* type = thrown.__cxa_exception_type();
  if (type == nullptr) return "unknown";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(type->name(), nullptr, nullptr, &status), std::free);
  std::string name = status == 0 && plain ? plain.get() : type->name();
  // The inline namespace is nobody's business.
  static const std::string ours = "holdfast::v";
  if (name.starts_with(ours)) {
    const auto end = name.find("::", ours.size());
    if (end != std::string::npos) name.erase(8, end - 8);
  }
  return name;
}

}  // namespace HOLDFAST_NAMESPACE
