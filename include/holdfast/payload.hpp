#pragma once

/// \file
/// Payload classes: the names under which types are stored (PAYLOAD_CLASS), and which of them may be decoded. A row names its class; what
/// it names is believed only if it was registered or allowed here, and is looked at before a single byte is decoded.

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

/// The payload classes that may be decoded. Empty: none.
/// Thread-safety: like a standard container; share it freely once it is filled.
class HOLDFAST_API payload_allowlist {
 public:
  /// Allows a class by its exact name, or all classes of a package: `com.acme` allows `com.acme`, `com.acme.X` and `com.acme.sub.Y`, and
  /// never `com.acmeX`. Throws errc::invalid_argument, errc::too_large or errc::ill_formed_text for what can be no name.
  void allow(std::string name_or_package);
  /// Allows one class, and nothing below it. Throws as allow.
  void allow_exactly(std::string name);

  [[nodiscard]] bool allows(std::string_view payload_class) const noexcept;
  /// Throws errc::permission, naming the class and what to do, unless it is allowed. To be called before decoding.
  void check(std::string_view payload_class) const;

  /// What is allowed, sorted; packages are followed by `.*`.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::set<std::string, std::less<>> exact_{};
  std::set<std::string, std::less<>> packages_{};
};

namespace detail {

/// What a list holds; void for anything else. Text is no list, and a map holds pairs that have no class of their own.
template <class T>
struct payload_element {
  using type = void;
};
template <class T>
  requires(
      std::ranges::range<T> && requires { typename T::value_type; } && !requires { typename T::mapped_type; } &&
      !requires { typename T::traits_type; } && !std::is_same_v<typename T::value_type, std::byte>)
struct payload_element<T> {
  using type = typename T::value_type;
};

}  // namespace detail

/// Which C++ type is stored under which name. One type has one name that is written and any number that are read too.
///
///     holdfast::payload_registry types;
///     types.add<country>("com.acme.Country");
///     types.add_java_list<std::vector<country>>();
///
/// Thread-safety: like a standard container; share it freely once it is filled.
class HOLDFAST_API payload_registry {
  template <class T>
  using element_of = typename detail::payload_element<T>::type;

 public:
  /// Registers a type: `name` is written, and those of `also` are read too. The element type of a list must be registered before it.
  /// Throws errc::invalid_argument for what can be no name, or a list whose elements have none; errc::duplicate when the type has a name
  /// already, or another type has one of these. Leaves the registry as it was then.
  template <class T>
  void add(std::string name, std::vector<std::string> also = {}) {
    also.insert(also.begin(), std::move(name));
    add_type(typeid(T), typeid(element_of<T>), std::move(also));
  }
  /// Registers a list under the classes that Java's lists have in PAYLOAD_CLASS: `java.util.ArrayList` is written; those of `List.of`,
  /// `Arrays.asList` and alike are read too. Java forgets what a list holds, so all lists share these names. Throws as add.
  template <class T>
  void add_java_list() {
    static_assert(!std::is_void_v<element_of<T>>, "holdfast: this type is no list");
    add_java_list_type(typeid(T), typeid(element_of<T>));
  }

  /// Allows more than was registered; see payload_allowlist::allow.
  void allow(std::string name_or_package) { more_.allow(std::move(name_or_package)); }

  /// The name that is written for a type. A list that was not registered itself is named after its elements: `app.country[]`.
  /// Throws errc::not_found when nobody registered it.
  template <class T>
  [[nodiscard]] std::string name_of() const {
    return written_name(typeid(T), typeid(element_of<T>));
  }

  /// What a point with answers of type T may decode: its names, and what was allowed beside. Throws as name_of.
  template <class T>
  [[nodiscard]] payload_allowlist allowlist_of() const {
    return names_read(typeid(T), typeid(element_of<T>));
  }

  /// All registered names, those of list elements included, and what was allowed beside.
  [[nodiscard]] payload_allowlist allowlist() const;

 private:
  void add_type(std::type_index type, std::type_index element, std::vector<std::string> given);
  void add_java_list_type(std::type_index type, std::type_index element);
  [[nodiscard]] std::string written_name(std::type_index type, std::type_index element) const;
  [[nodiscard]] payload_allowlist names_read(std::type_index type, std::type_index element) const;

  std::map<std::type_index, std::vector<std::string>> by_type_{};  // the first name is written
  std::map<std::string, bool, std::less<>> taken_{};               // name -> only lists have it
  payload_allowlist more_{};
};

}  // namespace HOLDFAST_NAMESPACE
