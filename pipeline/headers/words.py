"""The words of headers, in sixteen languages, and what each of them is a cue of.

English, German, French, Spanish, Italian, Dutch, Portuguese, Polish, Swedish, Danish, Norwegian, Finnish,
Czech, Hungarian, Romanian and Greek; one language a line. Words are written as their language writes them:
`meaning` compares them without case, accents and umlauts, and knows `ae` for `ä`. A word that could mean two
things in two languages is left out, or its cells decide.
"""

from collections.abc import Mapping
from enum import StrEnum


class Cue(StrEnum):
    """What a word of a header says about its column."""

    OURS = "our side"
    THEIRS = "the payee"
    MARK = "the payee's side"
    HOLDER = "who owns the account"
    OWNER = "who owns something"
    NAME = "a name"
    FULL = "whole"
    GIVEN = "given name"
    MIDDLE = "middle name"
    FAMILY = "family name"
    SECOND_FAMILY = "second family name"
    INITIALS = "initials"
    COMPANY = "a company"
    OTHER_PERSON = "a person who is not paid"
    PARENT = "a parent"
    PERSON = "the person a list is about"
    SUPPLIER = "the supplier a list is about"
    CUSTOMER = "the customer a list is about"
    PARTY = "any other party that a list may be about"
    BANK = "a bank"
    BANK_CODE = "a bank's code"
    ACCOUNT = "an account"
    BARE_ACCOUNT = "an account, whose is not said"
    LEDGER = "an account in the books"
    NUMBER = "a number"
    ID = "an id"
    TYPE = "a type"
    CODE = "a code"
    IBAN = "an IBAN"
    BIC = "a BIC"
    SORT_CODE = "a sort code"
    SECONDARY = "a secondary reference"
    LEI = "a LEI"
    ORGANISATION = "an organisation"
    SCHEME = "a scheme"
    ISSUER = "an issuer"
    AMOUNT = "an amount"
    NET = "net"
    PAYMENT = "a payment"
    CURRENCY = "a currency"
    CHOICE = "one of two currencies"
    REFERENCE = "a reference"
    MESSAGE = "a text for the payee"
    END_TO_END = "end to end"
    DATE = "a date"
    BOOKED = "booked"
    BALANCE = "a balance"
    MANDATE = "a mandate"
    COLLECTION = "a collection"
    SEQUENCE = "a sequence type"
    CREDITOR_ID = "a creditor identifier"
    DIRECTION = "whether money came in or went out"
    AND = "both"
    PERSON_OR_BUSINESS = "personal or business"
    INTERMEDIARY = "another bank on the way"
    FILLER = "nothing"


WORDS: Mapping[Cue, str] = {
    Cue.OURS: """
        debit, debited, ultimate debtor, AG, a debitar, debitar, obciążany, terhelendő számla, debtor,
            payer, ordering, orderer, originator, originating, orig, from, source,
            our, own, debiting, funding, first party, to be debited, disbursement bank,
            sender, sending, remitter, paying, charge, paid from, pay from, my, issuing, drawer
        Auftraggeber, Absender, Belastung, eigenes, eigene, eigener, unser, unsere, Auftragskonto,
            Zahlungspflichtiger,
            Belastungskonto, Senderkonto, Zahler
        donneur d'ordre, débiteur, émetteur, expéditeur, débit, à débiter, propre, notre, nos
        ordenante, cargo, deudor, emisor, adeudo, propia, propio, origen, nuestra, nuestro
        ordinante, addebito, debitore, mittente, propria, proprio, nostro, nostra
        opdrachtgever, debiteur, afzender, eigen, onze
        devedor, remetente, débito, própria, próprio, origem, nossa, nosso
        zleceniodawca, zleceniodawcy, nadawca, nadawcy, obciążenia, dłużnik, dłużnika, własny, własne
        avsändare, betalare, från, eget, egen, debet, uttagskonto
        afsender, betaler, fra, egen konto, debitor, hævekonto
        avsender, avsenders, belastes, belastning, debitors
        maksaja, maksajan, veloitus, veloitettava, lähettäjä, oma
        plátce, plátcův, odesílatel, odesílatele, příkazce, vlastní, dlužník
        terhelendő, terhelt, fizető, küldő, saját, adós, megbízó, átutaló, kezdeményező, forrás
        plătitor, ordonator, debitor, debitat, expeditor, propriu
        εντολέας, εντολέα, χρέωσης, πληρωτής, πληρωτή, αποστολέας, δικός μας
    """,
    Cue.THEIRS: """
        payee, beneficiary, beneficiaries, benef, bene, ben, creditor, cdtr, recipient, receiver,
            pay to, paid to, payable to, payment to, refund to, cheque payable to, counterparty, transferee,
            payable name, alternative payee, permitted payee, nominee, ze, remit to, second party
        Empfänger, Empfängers, Empf, Begünst, Zahlungsempf, Zahlung an, Zahlungsempfänger,
            Zahlungsempfängers, Begünstigter, Begünstigte, Begünstigten,
            Begünstigtem, Kreditor, Überweisungsempfänger, Gläubiger, Zahlungsempfängerin, Empfängerin
        bénéficiaire, bénéficiaires, bénéf, benefic, à l'ordre de, a favore di, destinataire,
            créancier, créditeur
        beneficiario, destinatario, acreedor
        creditore, percipiente, ricevente
        begunstigde, begunstigden, ontvanger, ontvangers, crediteur, tegenpartij
        beneficiário, beneficiária, destinatário, favorecido, credor
        odbiorca, odbiorcy, beneficjent, beneficjenta, wierzyciel
        mottagare, mottagar, betalningsmottagare, borgenär, förmånstagare, betalas till
        modtager, betalingsmodtager, beløbsmodtager, begunstiget, betales til, kreditor
        mottaker, mottakar, betalingsmottaker, beløpsmottaker, kreditors
        saaja, saajan, maksunsaaja, maksun saaja, vastaanottaja, velkoja
        příjemce, příjemci, adresát, věřitel, protistrana
        kedvezményezett, kedvezményezettje, címzett, jogosult, hitelező
        beneficiar, beneficiarul, beneficiarului, destinatar, creditor
        δικαιούχος, δικαιούχου, παραλήπτης, παραλήπτη, πιστωτής
    """,
    Cue.MARK: """
        to, to be credited, credit, credited,
            a creditar, creditar, uznawany, jóváírandó, receiving, destination, dest, target
        Gutschrift, Gutschrifts, Ziel
        à créditer, crédit, destination
        abono, destino
        accredito
        tegen, naar
        destino, crédito
        uznania, docelowy
        till
        til
        til
        hyvitys
        ve prospěch
        jóváírás
        credit, creditat
        πίστωσης
    """,
    Cue.HOLDER: """
        account holder, account holders, accountholder, name on account, name on the account, name on
            bank account,
            name of account, name of account holder, name of bank account holder, bank account holder name,
            name of the account holder, name in account, name shown on account, name shown on the account,
            name as shown on account, name as on account, name on bank records, name as per bank, bank
            account name
        Kontoinhaber, Kontoinhabers, Kontoinhaberin, Kto Inh, Kto Inhaber
        titulaire du compte, détenteur du compte, titulaire compte, nom du titulaire du compte, titul compte
        titular de la cuenta, titular cuenta, titular cta
        intestatario, intestatario conto, intestatario del conto, intestazione, intestazione conto,
            intest conto,
            titolare del conto
        rekeninghouder, tenaamstelling, ten name van, tnv, rekeningnaam
        titular da conta, titular conta
        posiadacz rachunku, właściciel rachunku, posiadacza rachunku, właściciel konta
        kontoinnehavare, kontohavare, kontots innehavare
        kontohaver, kontoindehaver
        kontoinnehaver, kontoeier
        tilinomistaja, tilinhaltija, tilin omistaja, tilin haltija, pankkitilin nimi
        majitel účtu, majitele účtu, vlastník účtu, majitel bankovního účtu
        számlatulajdonos, számlatulajdonos neve, bankszámla tulajdonosa
        titularul contului, titularului contului, titular cont
        κάτοχος λογαριασμού, δικαιούχος λογαριασμού, δικαιούχοι λογαριασμού, όνομα κατόχου λογαριασμού
    """,
    Cue.OWNER: """
        holder, account owner
        Inhaber, Inhaberin
        titulaire
        titular
        titolare
        posiadacz
        majitel
        titularul
        κάτοχος
    """,
    Cue.NAME: """
        name, names, nm, first and last name, first last name, initials and surname, initials and last name
        Vor und Nachname, Vor und Zuname
        nom et prénom, nom prénom, prénom nom, prénom et nom
        nombre y apellidos, apellidos y nombre, nome e cognome, cognome e nome
        för och efternamn, for og efternavn, for og etternavn
        nom, noms, libellé du nom, dénomination
        nombre, nombres, denominación
        nominativo, denominazione
        naam, namen, voorletters en achternaam
        nome, nomes
        nazwa, nazwisko i imię, imię i nazwisko, nazwę
        namn
        navn
        nimi
        jméno, jména, jméno a příjmení, příjmení a jméno, název
        név, neve, megnevezés
        nume și prenume, nume, numele, denumire
        όνομα, ονοματεπώνυμο, επωνυμία, ονομα
    """,
    Cue.FULL: """
        full, complete, legal, whole, fulde, fullt, fullständigt, koko, celé
        vollständiger, voller
        complet
        completo
        volledige
        pełna, pełne
        teljes
        complet, completă
        πλήρες
    """,
    Cue.GIVEN: """
        first name, first names, given name, given names, forename, forenames, christian name, fname,
            firstname, first, given
        Vorname, Vornamen, Rufname
        prénom, prénoms
        nombre de pila, primer nombre
        nome di battesimo
        voornaam, roepnaam, voornamen
        nome próprio, primeiro nome
        imię, imiona
        förnamn, tilltalsnamn
        fornavn
        etunimi, etunimet, kutsumanimi
        křestní jméno
        keresztnév, utónév
        prenume, prenumele
        μικρό όνομα
    """,
    Cue.MIDDLE: """
        middle name, middle names, middle, middle initial, middle initials, second forename
        zweiter Vorname
        deuxième prénom
        segundo nombre
        secondo nome
        tussenvoegsel, tussenvoegsels, voorvoegsel
        nome do meio
        drugie imię
        mellannamn
        mellemnavn
        mellomnavn
    """,
    Cue.FAMILY: """
        last name, last names, family name, surname, surnames, second name, lname, lastname, last
        Nachname, Nachnamen, Familienname, Zuname
        nom de famille, nom d'usage, nom patronymique
        apellido, apellidos, primer apellido, apellido paterno, 1er apellido
        cognome, cognomi
        achternaam, familienaam
        apelido, apelidos, sobrenome, último nome
        nazwisko
        efternamn, släktnamn
        efternavn
        etternavn
        sukunimi
        příjmení
        vezetéknév, családnév, családi név
        nume de familie
        επώνυμο, επίθετο
    """,
    Cue.SECOND_FAMILY: """
        second surname, second last name, second family name
        segundo apellido, apellido 2, 2o apellido, 2do apellido, apellido materno
        segundo apelido, apelido 2
    """,
    Cue.INITIALS: """
        initials, initial, first initial, first initials
        Initialen
        initiales
        iniciales
        iniziali
        voorletters, voorletter, initialen
        iniciais
        inicjały
        initialer
        initialer
        initialer
        nimikirjaimet
        iniciály
        inițiale
        αρχικά
    """,
    Cue.COMPANY: """
        company, company name, business, business name, firm, entity,
            trading name, entity name, legal entity, employer
        Firma, Firmenname, Unternehmen, Gesellschaft, Firmierung, Arbeitgeber
        société, raison sociale, entreprise, employeur
        empresa, razón social, compañía
        azienda, ragione sociale, impresa, società, ditta
        bedrijf, bedrijfsnaam, onderneming, organisatie, werkgever
        razão social, firma
        firma, przedsiębiorstwo, nazwa firmy
        företag, företagsnamn, bolag
        firmanavn, virksomhed, selskab, virksomhedsnavn
        selskapsnavn, foretak, bedriftsnavn
        yritys, yrityksen nimi, yhtiö
        společnost, název firmy, název společnosti
        cég, cégnév, vállalat
        societate, companie, firmă
        εταιρεία, επιχείρηση
    """,
    Cue.OTHER_PERSON: """
        contact, contact person, ultimate creditor, ultimate beneficiary, UltmtCdtr, emergency,
            emergency contact, approver, approved by, authoriser,
            authorizer, signatory, manager, account manager,
            line manager, bank name, branch name, name of bank, name of the bank, next of kin, username,
            user name, user, login, created by, requested by,
            prepared by, agent bank, bank contact, spouse, supervisor, representative,
            attention, guarantor, witness
        Ansprechpartner, Kontaktperson, Kontakt, Bankname, Name der Bank, Kreditinstitut, Geldinstitut,
            Sachbearbeiter,
            Benutzer, Benutzername, Vorgesetzter, Ehepartner, Bearbeiter
        contact, personne de contact, nom de la banque, utilisateur, responsable, interlocuteur, conjoint
        contacto, persona de contacto, nombre del banco, usuario, responsable
        contatto, referente, nome banca, utente, nome della banca
        contactpersoon, naam bank, banknaam, gebruiker, gebruikersnaam
        contato, nome do banco, utilizador
        osoba kontaktowa, kontakt, nazwa banku, użytkownik
        kontaktperson, banknamn, bankens namn, användare
        kontaktpersonens navn, banknavn, bankens navn, bruger
        bruker
        yhteyshenkilö, pankin nimi, käyttäjä
        kontaktní osoba, název banky, uživatel
        kapcsolattartó, bank neve, felhasználó
        persoană de contact, numele băncii, nume bancă, utilizator
        υπεύθυνος επικοινωνίας, όνομα τράπεζας, χρήστης
    """,
    Cue.PARENT: """
        parent, guardian, parent guardian, carer, mother, father
        Elternteil, Erziehungsberechtigter, Mutter, Vater
        responsable légal
        tutor
        genitore
        ouder, voogd
        rodzic
        vårdnadshavare, förälder
        forælder
        forelder
        huoltaja
        rodič
        szülő
        părinte
        γονέας
    """,
    Cue.PERSON: """
        employee, employees, staff, staff member, worker, workers, member of staff, personnel
        Mitarbeiter, Mitarbeiters, Mitarbeiterin, Arbeitnehmer, Arbeitnehmers, Beschäftigter, Angestellter
        salarié, employé, collaborateur
        empleado, trabajador
        dipendente, lavoratore, collaboratore
        werknemer, medewerker
        funcionário, empregado, trabalhador, colaborador
        pracownik, pracownika
        anställd, anställds, medarbetare, löntagare, lönemottagare
        medarbejder, ansat, lønmodtager
        ansatt, ansattes, arbeidstaker, lønnsmottaker, lønnstaker
        työntekijä, työntekijän, palkansaaja
        zaměstnanec, zaměstnance
        munkavállaló, dolgozó, alkalmazott
        angajat, salariat, angajatului
        υπάλληλος, εργαζόμενος, εργαζομένου, υπαλλήλου
    """,
    Cue.SUPPLIER: """
        supplier, suppliers, vendor, vendors, contractor, contractors, subcontractor, freelancer, consultant,
            business partner
        Lieferant, Lieferanten, Auftragnehmer, Dienstleister, Geschäftspartner
        fournisseur, prestataire
        proveedor
        fornitore
        leverancier
        fornecedor
        dostawca, dostawcy, kontrahent, kontrahenta, zleceniobiorca
        leverantör, leverantörens
        leverandør, leverandørens
        leverandørnavn
        toimittaja, toimittajan
        dodavatel, dodavatele
        szállító, beszállító
        furnizor, furnizorul, furnizorului, prestator
        προμηθευτής, προμηθευτή
    """,
    Cue.CUSTOMER: """
        customer, customers, client
        Kunde, Kunden
        client
        cliente
        cliente
        klant
        cliente
        klient, klienta
        kund
        kunde
        kunde
        asiakas, asiakkaan
        zákazník
        vevő, ügyfél
        client
        πελάτης, πελάτη
    """,
    Cue.PARTY: """
        member, tenant, landlord, student,
            pupil, claimant, volunteer, donor, player, participant, patient,
            pensioner,
            agent name, broker, solicitor, lawyer, executor, assignee, factor, factoring, trustee,
            translator, installer,
            practitioner, coach, trainer, teacher, instructor, driver, childminder, host, host family, heir,
            sales rep, support worker, letting agent, shareholder, policyholder, merchant, seller,
            partner, author, artist, owner
        Makler, Vermittler, Hausverwaltung, Dozent, Trainer, Eigentümer, Mieter, Vermieter, Schüler, Student,
            Mitglied
        apporteur, intervenant, formateur, affactureur, propriétaire, locataire, bailleur, élève, étudiant,
            adhérent
        cesionario, formador, inquilino, arrendador, alumno, socio
        inquilino, locatore, alunno
        huurder, verhuurder, leerling, lid
        inquilino, senhorio, aluno
        najemca, wynajmujący, uczeń
        hyresgäst, hyresvärd, elev, medlem
        lejer, udlejer
        leietaker, utleier
        vuokralainen, vuokranantaja, oppilas
        lektor, nájemník, pronajímatel, žák
        bérlő, bérbeadó
        conducător, chiriaș, proprietar, elev
        ενοικιαστής, μαθητής
    """,
    Cue.BANK: """
        bank, banking, bank's, bank detail, bank details
        banque, bancaire
        banco, bancaria, bancario
        banca
        bancária, bancário
        bankowe, bankowy, bankowego
        bankens
        pankki, pankin
        banky, bankovní
        bankszámla bank
        bancar, băncii
        τράπεζα, τραπεζικός, τράπεζας, τραπεζικού
    """,
    Cue.BANK_CODE: """
        branch code, branch number, national bank code, national clearing code, clearing code, bank key, NCC
    """,
    Cue.ACCOUNT: """
        account, accounts, acct, acc, a c, accnt
        Bankverbindung, Bankkonto, Kontos
        compte
        cuenta
        conto, c c
        rekening, bankrekening, rek
        NIB, kto, cta
        conta
        rachunek, rachunku, konta, nr rachunku, NRB
        bankkonto, bankkontonummer, bankkonto nr
        kontonr
        kontonummer
        tili, tilinumero, tilinro, tilin, pankkitili, pankkitilitieto
        účet, účtu, číslo účtu, č ú, bankovní spojení
        számla, számlaszám, bankszámla, bankszámlaszám
        cont, contul, contului
        λογαριασμός, λογαριασμού
    """,
    Cue.BARE_ACCOUNT: """
        Konto
    """,
    Cue.LEDGER: """
        nominal, ledger, GL, cost centre, cost center, expense, nominal account, general ledger
        Sachkonto, Gegenkonto, Kostenstelle, Buchungskonto, Debitorennummer, Kreditorennummer,
            Kundennummer, Lieferantennummer
        compte général, centre de coût
        cuenta contable
        centro di costo
        grootboek, grootboekrekening, kostenplaats
        konto księgowe
        kostnadsställe
        finanskonto
        kostnadssted
        nákladové středisko
    """,
    Cue.NUMBER: """
        number, numbers, no, nos, num, nr, numero
        Nummer, Nr
        numéro, n
        número
        numero
        nummer
        número, nº
        numer
        nr
        číslo
        szám, száma
        număr, numărul, numărul de
        αριθμός, αριθμού, αρ
    """,
    Cue.ID: """
        id, ids, identifier, identification, ident, identity
        Kennung, Identifikation
        identifiant
        identificador, identificación
        identificativo
        kenmerk id
        identyfikator
        tunniste
        identifikátor
        azonosító
        identificator
        αναγνωριστικό
    """,
    Cue.TYPE: """
        type, kind, category
        Typ, Kontoart
        tipo
        soort
        typ, rodzaj
        tyyppi
        típus
        tip
        τύπος
    """,
    Cue.CODE: """
        code
        Code
        código
        codice
        kod
        koodi
        kód
        cod
        κωδικός
    """,
    Cue.IBAN: "IBAN, IBANs, IBAN number, IBAN nummer, IBAN nr, konto IBAN, ΙΒΑΝ",
    Cue.BIC: """
        BIC, SWIFT, BICFI, BIC SWIFT, SWIFT BIC, SWIFT code, BIC code, bank identifier code
    """,
    Cue.SORT_CODE: """
        sort code, sortcode, sort codes, bank sort code, bank sort, sort, sorting code, branch sort
            code, sc, s c
    """,
    Cue.SECONDARY: """
        secondary reference, secondary identification, secondary id, roll number, roll no, building
            society roll number, building society reference,
            building society roll no, secondary reference data, building society number, roll ref
    """,
    Cue.LEI: "LEI, legal entity identifier, LEI code",
    Cue.ORGANISATION: "organisation, organization, org",
    Cue.SCHEME: "scheme",
    Cue.ISSUER: "issuer",
    Cue.AMOUNT: """
        amount, amt, value, sum, InstdAmt, instructed amount, net pay, payable
        Betrag, Summe, Zahlbetrag, Auszahlungsbetrag, Überweisungsbetrag, Nettolohn
        montant, somme, net à payer
        importe, cantidad, monto, líquido
        importo, somma, netto in busta
        bedrag, netto loon
        valor, montante, importância
        kwota, wartość
        belopp, summa, att betala
        beløb
        beløp, sum
        määrä, summa, maksettava
        částka, suma
        összeg
        sumă, suma, valoare
        ποσό, ποσού
    """,
    Cue.NET: "net, netto, pay, total, salary, wage, wages, nett",
    Cue.PAYMENT: """
        payment, payments, refund, settlement, transaction, transfer, remittance, order, instruction,
            txn, trx, trans,
            transfer order, payout, salary payment
        Zahlung, Überweisung, Zahlungs, Auftrag, Transaktion
        paiement, virement, opération, transaction
        pago, transferencia, operación
        pagamento, bonifico, disposizione
        betaling, overboeking, transactie
        transferência, operação
        płatność, przelew, przelewu, płatności, transakcji, operacji
        betalning, överföring
        betaling, overførsel
        overføring
        maksu, maksun, tilisiirto
        platba, platby, převod, transakce
        átutalás, utalás, fizetés, tranzakció
        plată, plății, transfer, tranzacție
        πληρωμή, πληρωμής, μεταφορά, συναλλαγής
    """,
    Cue.CURRENCY: """
        currency, currency code, ccy, curr, cur, iso currency
        Währung, Waehrung, Währungscode, WKZ, Whrg
        devise, monnaie
        moneda, divisa
        divisa, valuta
        munt, muntsoort
        moeda
        waluta, waluty
        valutakod
        valutakode
        valuutta
        měna, měny
        deviza, devizanem, pénznem
        monedă, valută
        νόμισμα, νομίσματος
    """,
    Cue.CHOICE: """
        amount currency, payment currency, payout currency, source currency, target currency,
            settlement currency, fixed side
    """,
    Cue.REFERENCE: """
        reference, ref, references, ref no, reference number, customer reference, your reference
        Referenz, Referenznummer, Kundenreferenz
        référence, réf
        referencia
        riferimento
        kenmerk, betalingskenmerk, referentie
        referência
        referencja, tytuł
        referens
        reference
        referanse
        viite, viitenumero
        reference platby
        hivatkozás
        referință
        αναφορά
    """,
    Cue.MESSAGE: """
        remittance information, remittance info, payment reference, payment details, narrative,
            narration, message, ustrd, label, description, memo,
            text for creditor, statement text, details for beneficiary, purpose, payment description,
            unstructured
        Verwendungszweck, VWZ, Zweck, Umsatzbeschreibung, Buchungstext, Verwendungszweck 1
        motif, libellé, communication, objet
        concepto, motivo
        causale
        omschrijving, mededeling, betreft
        descrição, descritivo, motivo
        tytuł przelewu, tytuł płatności, tytułem, opis, tytułu
        meddelande, betalningsreferens
        meddelelse, besked, tekst
        melding
        viesti, selite
        zpráva pro příjemce, zpráva, poznámka
        közlemény, megjegyzés
        detalii plată, explicații, detalii
        αιτιολογία, περιγραφή
    """,
    Cue.END_TO_END: "end to end, E2E, EndToEndId, endtoend, e2e id",
    Cue.DATE: """
        date, day
        Datum, Ausführungsdatum
        fecha
        data
        dato
        päivä, päivämäärä, pvm
        dátum, napja
        dată
        ημερομηνία
    """,
    Cue.BOOKED: """
        booking, booked, posting, posted, transaction date, entry date, booking date, posting date,
            value date, date posted
        Buchungstag, Buchungsdatum, Buchung, Wertstellung, Valutadatum
        date d'opération, date opération, date de comptabilisation, date de valeur
        fecha operación, fecha de operación, fecha valor
        data operazione, data contabile, data valuta
        boekdatum, boekingsdatum
        data movimento, data mov
        data operacji, data księgowania
        bokföringsdag, bokföringsdatum, bokningsdag, bokningsdatum
        bogføringsdato, bogført
        bokført dato, bokføringsdato
        kirjauspäivä
        datum zaúčtování
        könyvelés dátuma, értéknap
        data tranzacției
        ημερομηνία κίνησης
    """,
    Cue.BALANCE: """
        balance, running balance, closing balance, account balance, balance after, ledger balance,
            available balance
        Saldo, Kontostand, Saldo nach Buchung
        solde
        saldo
        eindsaldo, saldo na mutatie
        saldo contabilístico
        saldo po operacji
        kontosaldo
        zůstatek
        egyenleg
        sold
        υπόλοιπο
    """,
    Cue.MANDATE: """
        mandate, mandate id, mandate reference, mandate ref, mandate date, date of signature, mandate
            signed, mandate number, mandate identification
        Mandat, Mandatsreferenz, Mandatsdatum, Mandats ID, Mandatsnummer, Unterschriftsdatum, Mandatsref
        mandat, RUM, référence unique de mandat, référence du mandat, date de signature
        mandato, referencia del mandato, fecha de firma
        identificativo mandato, data firma
        machtiging, machtigingskenmerk, machtigingsnummer, machtigingsdatum, ondertekendatum,
            datum ondertekening, mandaat, mandaatreferentie
        autorização de débito
        zgoda na polecenie zapłaty
        medgivande
        betalingsaftale
        avtalegiro
        valtakirja
        mandát
        felhatalmazás
        εντολή πάγιας
    """,
    Cue.COLLECTION: """
        collection date, collection, due date for collection, requested collection date
        Einzugsdatum, Einzug, Fälligkeitsdatum, Fälligkeit, Lastschrift
        date de prélèvement, prélèvement, date d'échéance
        fecha de cobro, cobro
        data incasso, incasso
        incassodatum, inningsdatum
    """,
    Cue.SEQUENCE: """
        sequence type, SeqTp, sequence
        Sequenz, Sequenztyp, Lastschriftart, Lastschrift Sequenz
        type de séquence
        tipo de secuencia
        tipo sequenza
        incassotype, volgorde
    """,
    Cue.CREDITOR_ID: """
        creditor id, creditor identifier, creditor scheme id, creditor identification
        Gläubiger ID, Gläubiger Identifikationsnummer, Gläubigeridentifikationsnummer, Glaeubiger ID
        ICS, identifiant créancier, identifiant créancier SEPA
        identificador del acreedor
        codice creditore, identificativo creditore
        incassant ID
    """,
    Cue.DIRECTION: """
        direction, debit credit, credit debit, dr cr, cr dr, in out, money in out
        Soll Haben, S H, Umsatzart Soll Haben
        sens, débit crédit
        debe haber
        dare avere
        af bij, bij af, debet credit
        směr
        irány
        suunta
    """,
    Cue.AND: "and, und, et, y, e, en, i, og, och, ja, a, și, si, και, with, plus",
    Cue.PERSON_OR_BUSINESS: """
        person or business, personal or business, individual or business, individual or company,
            business or personal, personal business,
            person business, individual business, company or individual
    """,
    Cue.INTERMEDIARY: """
        intermediary, correspondent, intermediate, via, routing
        Korrespondenzbank, zwischengeschaltete
    """,
    Cue.FILLER: """
        of, the, in, on, for, by, uk, gb, sepa, eu, domestic, international, digits, digit, max,
            maximum, min, chars, characters, char, optional, mandatory,
            required, if, different, only, e g, eg, format, bank's, s, his, her, party, agent, as, is,
            local, new, or, routing number, leave blank,
            numeric, text, field, col, column, external, 6, 8, 14, 18, 35, 70, 140, 1, decimal, sepa
            credit transfer
        abw, abweichend, abweichender, der, des, die, das, dem, von, vom, für, beim, bei, auf, mit, oder
        de, du, la, le, les, d, l, au, sur, ou
        del, el, los, las, al, o
        di, della, dello, il, lo, su
        van, het, op, voor, bij, of
        do, da, dos, das, ao
        na, dla
        på, för, av, den
        af, i
        til
        pro, k, zaúčtovaná
        a, az
        pe, al, ale, ul
        του, της, το, η, ο, των, τον
    """,
}
"""Cue -> its words, separated by commas; a phrase counts as one word."""

THINGS = """
    addr, address, app, application, area, article, asset, batch, borough, brand, building, campaign,
        campus, card, category, center, centre, city, class, comment, contract, cost, country, county,
        course, department, dept, device, display, district, division, document, domain, event, field,
        file, folder, frequency, fund, gender, grade, group, item, job, line, list, location, machine,
        method, mode, month, nationality, nick, nickname, note, occupation, office, period, pet, plan,
        policy, position, postcode, preferred, process, product, profile, program, programme, project,
        property, reason, region, relationship, report, road, role, route, run, scheme, search, season,
        section, sector, service, sheet, short, site, stage, state, status, street, subject, table, tag,
        task, team, template, title, town, village, ward, week, workplace
    Abteilung, Adresse, Anschrift, Artikel, Bemerkung, Bereich, Datei, Gebäude, Grund, Gruppe, Gruppen,
        Kampagne, Kurs, Kurz, Land, Ort, Produkt, Projekt, Stadt, Standort, Stelle, Straße, Such, Titel,
        Veranstaltung, Vertrag, Vorlage
    adresse, chantier, commune, contrat, dossier, département, fichier, modèle, pays, poste, produit,
        projet, remarque, rue, ville
    archivo, calle, ciudad, contrato, departamento, dirección, fichero, obra, observaciones, plantilla,
        producto, proyecto, puesto, sede
    cantiere, città, contratto, filiale, indirizzo, modello, paese, prodotto, progetto, reparto, via
    adres, afdeling, bestand, filiaal, functie, opmerking, plaats, sjabloon, straat
"""
"""What has a name, or is written like one, and is no person or company: a header with one of these words
names no payee."""

CURRENCIES: Mapping[str, str] = {
    "£": "GBP",
    "gbp": "GBP",
    "pounds": "GBP",
    "pound": "GBP",
    "sterling": "GBP",
    "€": "EUR",
    "eur": "EUR",
    "euro": "EUR",
    "euros": "EUR",
    "usd": "USD",
    "chf": "CHF",
    "pln": "PLN",
    "zł": "PLN",
    "sek": "SEK",
    "dkk": "DKK",
    "nok": "NOK",
    "czk": "CZK",
    "kč": "CZK",
    "huf": "HUF",
    "ron": "RON",
    "bgn": "BGN",
}
"""What stands in the header of an amount for its currency -> ISO 4217. A `$` or `kr` is of several."""
