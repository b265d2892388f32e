#pragma once

/// \file
/// Payload classes: the names under which types are stored (column PAYLOAD_CLASS), and the list of
/// names that may be decoded. A row names its class. The name is checked against the list before
/// any byte of the payload is decoded.

#include <holdfast/error.hpp>
#include <holdfast/version.hpp>

#include <cstddef>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <vector>

namespace HOLDFAST_NAMESPACE {

/// The payload classes that may be decoded. An empty list allows none.
/// Thread-safety: like a standard container. It can be shared once it is filled.
class HOLDFAST_API payload_allowlist {
 public:
  /// Allows a class by its exact name, or all classes of a package: `com.acme` allows `com.acme`,
  /// `com.acme.X` and `com.acme.sub.Y`, but not `com.acmeX`. Throws errc::invalid_argument,
  /// errc::too_large or errc::ill_formed_text for an invalid name.
  void allow(std::string name_or_package);
  /// Allows one class, but no package of that name. Throws as allow.
  void allow_exactly(std::string name);

  [[nodiscard]] bool allows(std::string_view payload_class) const noexcept;
  /// Throws errc::permission unless the class is allowed. Call this before decoding.
  void check(std::string_view payload_class) const;

  /// Returns the allowed names, sorted. A package adds `name` and `name.*`.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::set<std::string, std::less<>> exact_{};
  std::set<std::string, std::less<>> packages_{};
};

namespace detail {

/// The element type of a list; void for other types. Strings are not lists. Maps are not lists
/// either: their pairs have no payload class.
template <class T>
struct payload_element {
  using type = void;
};
template <class T>
  requires(
      std::ranges::range<T> && requires { typename T::value_type; } &&
      !requires { typename T::mapped_type; } && !requires { typename T::traits_type; } &&
      !std::is_same_v<typename T::value_type, std::byte>)
struct payload_element<T> {
  using type = typename T::value_type;
};

}  // namespace detail

/// Maps C++ types to payload classes. A type has one name that is written and any number of further
/// names that are read.
///
///     holdfast::payload_registry types;
///     types.add<country>("com.acme.Country");
///     types.add_java_list<std::vector<country>>();
///
/// Thread-safety: like a standard container. It can be shared once it is filled.
class HOLDFAST_API payload_registry {
  template <class T>
  using element_of = typename detail::payload_element<T>::type;

 public:
  /// Registers a type. `name` is written and read; `aliases` are only read. The element type of a
  /// list must be registered before the list. Throws errc::invalid_argument for an invalid name or
  /// an unregistered element type, and errc::duplicate if the type is already registered or another
  /// type has one of the names. The registry is unchanged after an exception.
  template <class T>
  void add(std::string name, std::vector<std::string> aliases = {}) {
    aliases.insert(aliases.begin(), std::move(name));
    add_type(typeid(T), typeid(element_of<T>), std::move(aliases));
  }
  /// Registers a list under the names of Java's list classes. `java.util.ArrayList` is written; the
  /// classes of `List.of`, `Arrays.asList` and so on are also read. Java erases the element type,
  /// so all lists share these names. Throws as add.
  template <class T>
  void add_java_list() {
    static_assert(!std::is_void_v<element_of<T>>, "holdfast: this type is not a list");
    add_java_list_type(typeid(T), typeid(element_of<T>));
  }

  /// Allows further names; see payload_allowlist::allow.
  void allow(std::string name_or_package) { extra_allowed_.allow(std::move(name_or_package)); }

  /// Returns the name that is written for a type. A list that is not registered is named after its
  /// elements: `app.country[]`. Throws errc::not_found if the type is not registered.
  template <class T>
  [[nodiscard]] std::string name_of() const {
    return written_name(typeid(T), typeid(element_of<T>));
  }

  /// Returns what a point with answers of type T may decode: the names of T and the further allowed
  /// names. Throws as name_of.
  template <class T>
  [[nodiscard]] payload_allowlist allowlist_of() const {
    return readable_names(typeid(T), typeid(element_of<T>));
  }

  /// Returns all registered names and the further allowed names.
  [[nodiscard]] payload_allowlist allowlist() const;

 private:
  void add_type(std::type_index type, std::type_index element, std::vector<std::string> names);
  void add_java_list_type(std::type_index type, std::type_index element);
  [[nodiscard]] std::string written_name(std::type_index type, std::type_index element) const;
  [[nodiscard]] payload_allowlist readable_names(std::type_index type,
                                                 std::type_index element) const;

  std::map<std::type_index, std::vector<std::string>> by_type_{};  // the first name is written
  std::map<std::string, bool, std::less<>> used_names_{};          // name -> used by lists only
  payload_allowlist extra_allowed_{};
};

}  // namespace HOLDFAST_NAMESPACE
