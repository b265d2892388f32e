# Third-party libraries, all private: none of their types is in a public header.
#
# holdfast_dependency(<target> <pkg-config name> <how a CMake consumer finds it>)
# A static archive carries its private dependencies to whoever links it. This remembers, per imported target, the pkg-config name and the
# line of code that finds it again; HoldfastInstall puts them into holdfast.pc and holdfastConfig.cmake for the libraries that use it.
# A name like -lpq is taken as it is: pkg-config --static would ask for a database client's own private libraries, which nobody has.
function(holdfast_dependency target pkgconfig find)
  set_property(GLOBAL PROPERTY HOLDFAST_PKGCONFIG_OF_${target} "${pkgconfig}")
  set_property(GLOBAL PROPERTY HOLDFAST_FIND_OF_${target} "${find}")
endfunction()

# The same for a library that has only a pkg-config file: PkgConfig::<name>.
macro(holdfast_pkgconfig_dependency name module)
  pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
  holdfast_dependency(PkgConfig::${name} ${module} "holdfast_find_pkgconfig(${name} ${module})")
endmacro()

find_package(PkgConfig REQUIRED)

find_package(Threads REQUIRED)
holdfast_dependency(Threads::Threads "" "find_dependency(Threads)")

find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto SSL)
holdfast_dependency(OpenSSL::Crypto libcrypto "find_dependency(OpenSSL 3.0 COMPONENTS Crypto)")
holdfast_dependency(OpenSSL::SSL libssl "find_dependency(OpenSSL 3.0 COMPONENTS SSL)")

find_package(simdjson REQUIRED)
holdfast_dependency(simdjson::simdjson simdjson "find_dependency(Threads)\n  find_dependency(simdjson)")

# Headers only, in one .cpp: who links the library does not need it. (Debian's package has a library too, which we do not use.)
find_path(HOLDFAST_TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED DOC "Where toml++ is; on Debian: apt-get install libtomlplusplus-dev")
mark_as_advanced(HOLDFAST_TOMLPLUSPLUS_INCLUDE_DIR)

holdfast_pkgconfig_dependency(sodium libsodium)
holdfast_pkgconfig_dependency(lz4 liblz4)
holdfast_pkgconfig_dependency(xxhash libxxhash)

# Backends. HOLDFAST_HAS_<backend> says which ones this build has.
macro(holdfast_backend backend found package)
  if(HOLDFAST_WITH_${backend} STREQUAL "OFF")
    set(HOLDFAST_HAS_${backend} FALSE)
  else()
    if(NOT ${found} AND HOLDFAST_WITH_${backend} STREQUAL "ON")
      message(FATAL_ERROR "HOLDFAST_WITH_${backend} is ON, but its client library was not found; on Debian: apt-get install ${package}")
    elseif(NOT ${found})
      message(STATUS "Holdfast: no ${backend} backend, its client library was not found (on Debian: apt-get install ${package})")
    endif()
    set(HOLDFAST_HAS_${backend} ${${found}})
  endif()
endmacro()

if(NOT HOLDFAST_WITH_SQLITE STREQUAL "OFF")
  find_package(SQLite3 3.35 QUIET)
  holdfast_dependency(SQLite::SQLite3 -lsqlite3 "find_dependency(SQLite3 3.35)")
endif()
holdfast_backend(SQLITE SQLite3_FOUND libsqlite3-dev)

if(NOT HOLDFAST_WITH_POSTGRES STREQUAL "OFF")
  find_package(PostgreSQL 14 QUIET)
  holdfast_dependency(PostgreSQL::PostgreSQL -lpq "find_dependency(PostgreSQL 14)")
endif()
holdfast_backend(POSTGRES PostgreSQL_FOUND libpq-dev)

if(NOT HOLDFAST_WITH_MYSQL STREQUAL "OFF")
  pkg_check_modules(mariadb QUIET IMPORTED_TARGET libmariadb>=3.1)
  holdfast_dependency(PkgConfig::mariadb -lmariadb "holdfast_find_pkgconfig(mariadb libmariadb)")
endif()
holdfast_backend(MYSQL mariadb_FOUND libmariadb-dev)

if(NOT HOLDFAST_WITH_ODBC STREQUAL "OFF")
  pkg_check_modules(odbc QUIET IMPORTED_TARGET odbc>=2.3)
  if(odbc_FOUND)
    set_target_properties(PkgConfig::odbc PROPERTIES INTERFACE_COMPILE_OPTIONS "") # as hiredis's below
  endif()
  holdfast_dependency(PkgConfig::odbc -lodbc "holdfast_find_pkgconfig(odbc odbc)")
endif()
holdfast_backend(ODBC odbc_FOUND unixodbc-dev)

# Message brokers, for the relays of the outbox.
if(NOT HOLDFAST_WITH_RABBITMQ STREQUAL "OFF")
  pkg_check_modules(rabbitmq QUIET IMPORTED_TARGET librabbitmq>=0.11)
  holdfast_dependency(PkgConfig::rabbitmq -lrabbitmq "holdfast_find_pkgconfig(rabbitmq librabbitmq)")
endif()
holdfast_backend(RABBITMQ rabbitmq_FOUND librabbitmq-dev)

if(NOT HOLDFAST_WITH_NATS STREQUAL "OFF")
  pkg_check_modules(nats QUIET IMPORTED_TARGET libnats>=3.3)
  holdfast_dependency(PkgConfig::nats -lnats "holdfast_find_pkgconfig(nats libnats)")
endif()
holdfast_backend(NATS nats_FOUND libnats-dev)

if(NOT HOLDFAST_WITH_KAFKA STREQUAL "OFF")
  pkg_check_modules(rdkafka QUIET IMPORTED_TARGET rdkafka>=2.0)
  holdfast_dependency(PkgConfig::rdkafka -lrdkafka "holdfast_find_pkgconfig(rdkafka rdkafka)")
endif()
holdfast_backend(KAFKA rdkafka_FOUND librdkafka-dev)

# The Redis client is our own. The bench and a unit test compare it with hiredis.
set(HOLDFAST_HAS_REDIS TRUE)
if(HOLDFAST_WITH_REDIS STREQUAL "OFF")
  set(HOLDFAST_HAS_REDIS FALSE)
else()
  pkg_check_modules(hiredis QUIET IMPORTED_TARGET hiredis>=0.14)
  if(hiredis_FOUND)
    # Its -D_FILE_OFFSET_BITS=64 is not needed for what we include, and would make precompiled headers unusable.
    set_target_properties(PkgConfig::hiredis PROPERTIES INTERFACE_COMPILE_OPTIONS "")
  endif()
endif()
